// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// keyWebServiceURL is the key of the admin URL in the ConfigMap that a Function's spec.pulsar.pulsarConfig names.
const keyWebServiceURL = "webServiceURL"

// clusters finds the admin URL of an object's Pulsar cluster.
type clusters struct {
	reader      client.Reader
	credentials CredentialKeeper
	defaultURL  string
	addresses   *Lookups[types.NamespacedName, clusterAddress]
	// invalidated has the time at which a cluster last failed to answer as Pulsar does, by admin URL.
	invalidated *backlog.Cache[string, time.Time]
	now         func() time.Time
}

func newClusters(reader client.Reader, credentials CredentialKeeper, defaultURL string,
	now func() time.Time,
) *clusters {
	c := &clusters{
		reader: reader, credentials: credentials, defaultURL: defaultURL,
		addresses:   NewLookups[types.NamespacedName, clusterAddress](now),
		invalidated: backlog.NewCache[string, time.Time](LookupTTL, maxLookups), now: now,
	}
	c.addresses.invalidated = func(address clusterAddress, readAt time.Time) bool {
		at, seen := c.invalidated.Get(address.url, now())
		return seen && !at.Before(readAt)
	}
	return c
}

// clusterAddress is the URL in a ConfigMap, empty when it has none, or why it cannot be used.
type clusterAddress struct {
	url     string
	invalid string
}

// find returns the cluster from, in this order, the policy, the object's ConfigMap and the default, or what the user
// has to fix. An error is worth a retry.
func (c *clusters) find(ctx context.Context, connection *v1alpha1.PulsarConnection, configMap types.NamespacedName) (
	cluster backlog.Cluster, invalid string, err error,
) {
	if connection != nil && connection.AdminURL != "" {
		address, err := backlog.ParseAdminURL(connection.AdminURL)
		if err != nil {
			return backlog.Cluster{}, fmt.Sprintf("the policy's spec.pulsar.adminURL %s", err), nil
		}
		return backlog.Cluster{AdminURL: address}, "", nil
	}
	if configMap.Name != "" {
		address, err := c.addresses.Find(ctx, configMap, func(ctx context.Context) (clusterAddress, bool, error) {
			address, err := c.read(ctx, configMap)
			return address, address.invalid != "", err
		})
		switch {
		case err != nil:
			return backlog.Cluster{}, "", err
		case address.invalid != "":
			return backlog.Cluster{}, address.invalid, nil
		case address.url != "":
			return backlog.Cluster{AdminURL: address.url}, "", nil
		}
	}
	if c.defaultURL != "" {
		return backlog.Cluster{AdminURL: c.defaultURL}, "", nil
	}
	return backlog.Cluster{},
		"the admin URL of the Pulsar cluster is unknown: set spec.pulsar.adminURL of the policy, or " + keyWebServiceURL +
			" in the ConfigMap that spec.pulsar.pulsarConfig names, or the default admin URL of the adapter", nil
}

// invalidate has the next lookup read the ConfigMaps that name the cluster again, because it does not answer as Pulsar
// does. The cost does not grow with their number: every policy of a broker that is down calls it at every reconcile.
func (c *clusters) invalidate(cluster backlog.Cluster) {
	// Addresses read before this expire now.
	now := c.now()
	c.invalidated.Put(cluster.AdminURL, now, now)
	c.credentials.Invalidate(cluster.Access)
}

// read requests a ConfigMap from the API server. A missing or forbidden ConfigMap never falls back to the default
// cluster: it may name another cluster with the same topic names.
func (c *clusters) read(ctx context.Context, key types.NamespacedName) (clusterAddress, error) {
	if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
		return clusterAddress{invalid: fmt.Sprintf(
			"spec.pulsar.pulsarConfig is %q, which cannot be the name of a ConfigMap: %s", key.Name, problems[0])}, nil
	}
	var configMap corev1.ConfigMap
	err := c.reader.Get(ctx, key, &configMap)
	switch {
	case apierrors.IsNotFound(err):
		return clusterAddress{invalid: fmt.Sprintf(
			"ConfigMap %s, which spec.pulsar.pulsarConfig names, does not exist: create it, "+
				"or set spec.pulsar.adminURL of the policy", key.Name)}, nil
	case apierrors.IsForbidden(err):
		return clusterAddress{invalid: fmt.Sprintf(
			"ConfigMap %s, which spec.pulsar.pulsarConfig names, may not be read: grant the adapter "+
				"get on configmaps, or set spec.pulsar.adminURL of the policy", key.Name)}, nil
	case err != nil:
		return clusterAddress{}, fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	text := strings.TrimSpace(configMap.Data[keyWebServiceURL])
	if text == "" {
		return clusterAddress{}, nil
	}
	address, err := backlog.ParseAdminURL(text)
	if err != nil {
		return clusterAddress{invalid: fmt.Sprintf("%s in ConfigMap %s %s", keyWebServiceURL, key.Name, err)}, nil
	}
	return clusterAddress{url: address}, nil
}

// resolve returns the object's cluster with its credentials, or what the user has to fix.
func (c *clusters) resolve(ctx context.Context, w workload, connection *v1alpha1.PulsarConnection) (
	cluster backlog.Cluster, invalid string, err error,
) {
	cluster, invalid, err = c.find(ctx, connection, w.configMap())
	if err != nil || invalid != "" {
		return cluster, invalid, err
	}
	plan := PlanCredentials(cluster.AdminURL, w.Metadata.Namespace, connection, w.Spec.Pulsar)
	cluster.Access, invalid, err = c.credentials.Resolve(ctx, connection, plan)
	return cluster, invalid, err
}

// configMap names the ConfigMap of the object's Pulsar; without a name when the object has none.
func (w workload) configMap() types.NamespacedName {
	return types.NamespacedName{Namespace: w.Metadata.Namespace, Name: w.Spec.Pulsar.PulsarConfig}
}

// same reports whether two policies that name the same function of a worker mean the same cluster; true for policies of
// objects in Kubernetes. It makes no request, because the policies alone name the cluster.
func (c *clusters) same(ctx context.Context, a, b *v1alpha1.AutoscalingPolicy) bool {
	if a.Spec.PulsarFunctionRef.Name == "" || b.Spec.PulsarFunctionRef.Name == "" {
		return true
	}
	one, _, err := c.find(ctx, a.Spec.Pulsar, types.NamespacedName{})
	other, _, otherErr := c.find(ctx, b.Spec.Pulsar, types.NamespacedName{})
	return err == nil && otherErr == nil && one.AdminURL == other.AdminURL
}
