// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
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

type clusters struct {
	reader      client.Reader
	credentials *Credentials
	defaultURL  string
	// addresses are the URLs in ConfigMaps, empty for none.
	addresses *Lookups[types.NamespacedName, string]
	// invalidated has the time at which a cluster last failed to answer as Pulsar does, by admin URL.
	invalidated *backlog.Cache[string, time.Time]
	now         func() time.Time
}

func newClusters(reader client.Reader, credentials *Credentials, defaultURL string,
	now func() time.Time,
) *clusters {
	c := &clusters{
		reader: reader, credentials: credentials, defaultURL: defaultURL,
		addresses:   NewLookups[types.NamespacedName, string](now, lookupTTL),
		invalidated: backlog.NewCache[string, time.Time](lookupTTL, maxLookups), now: now,
	}
	c.addresses.invalidated = func(address string, readAt time.Time) bool {
		at, seen := c.invalidated.Get(address, now())
		return seen && !at.Before(readAt)
	}
	return c
}

// find returns the cluster from, in this order, the policy, the object's ConfigMap and the default. A plan.Violation is
// what the user has to fix, any other is worth a retry.
func (c *clusters) find(ctx context.Context, connection *v1alpha1.PulsarConnection, configMap types.NamespacedName) (
	backlog.Cluster, error,
) {
	if connection != nil && connection.AdminURL != "" {
		address, err := backlog.ParseAdminURL(connection.AdminURL)
		if err != nil {
			return backlog.Cluster{}, Invalidf("the policy's spec.pulsar.adminURL %s", err)
		}
		return backlog.Cluster{AdminURL: address}, nil
	}
	address := c.defaultURL
	if configMap.Name != "" {
		named, err := c.addresses.Find(ctx, configMap, c.read)
		if err != nil {
			return backlog.Cluster{}, err
		}
		address = cmp.Or(named, address)
	}
	if address == "" {
		also := ""
		if configMap.Name != "" {
			also = fmt.Sprintf(", %s in ConfigMap %s, which spec.pulsar.pulsarConfig names", keyWebServiceURL, configMap.Name)
		}
		return backlog.Cluster{}, Invalidf("the admin URL of the Pulsar cluster is unknown: set spec.pulsar.adminURL of "+
			"the policy%s, or --pulsar-admin-url of the adapter (value pulsar.adminURL of the chart)", also)
	}
	return backlog.Cluster{AdminURL: address}, nil
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
func (c *clusters) read(ctx context.Context, key types.NamespacedName) (string, error) {
	if problems := validation.IsDNS1123Subdomain(key.Name); len(problems) > 0 {
		return "", Invalidf("spec.pulsar.pulsarConfig is %q, which cannot be the name of a ConfigMap: %s", key.Name,
			problems[0])
	}
	var configMap corev1.ConfigMap
	err := c.reader.Get(ctx, key, &configMap)
	switch {
	case apierrors.IsNotFound(err):
		return "", Invalidf("ConfigMap %s, which spec.pulsar.pulsarConfig names, does not exist: create it, "+
			"or set spec.pulsar.adminURL of the policy", key.Name)
	case apierrors.IsForbidden(err):
		return "", Invalidf("ConfigMap %s, which spec.pulsar.pulsarConfig names, may not be read: grant the adapter "+
			"get on configmaps, or set spec.pulsar.adminURL of the policy", key.Name)
	case err != nil:
		return "", fmt.Errorf("reading ConfigMap %s: %w", key, err)
	}
	text := strings.TrimSpace(configMap.Data[keyWebServiceURL])
	if text == "" {
		return "", nil
	}
	address, err := backlog.ParseAdminURL(text)
	if err != nil {
		return "", Invalidf("%s in ConfigMap %s %s", keyWebServiceURL, key.Name, err)
	}
	return address, nil
}

// resolve returns the cluster of an object in the namespace, with its credentials. A plan.Violation is what the user
// has to fix, any other error is worth a retry.
func (c *clusters) resolve(ctx context.Context, namespace string, pulsar PulsarSpec,
	connection *v1alpha1.PulsarConnection,
) (cluster backlog.Cluster, err error) {
	configMap := types.NamespacedName{Namespace: namespace, Name: pulsar.PulsarConfig}
	if cluster, err = c.find(ctx, connection, configMap); err != nil {
		return cluster, err
	}
	plan := planCredentials(cluster.AdminURL, namespace, connection, pulsar)
	cluster.Access, err = c.credentials.resolve(ctx, connection, plan)
	return cluster, err
}
