// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// keyWebServiceURL is the key of the admin URL in the ConfigMap that a Function's spec.pulsar.pulsarConfig names.
const keyWebServiceURL = "webServiceURL"

// ConfigMaps are read one by one, for there is no permission to list them: a user's secrets stand in such places.
const (
	// configMapFor: a ConfigMap with an address changes when a cluster moves; a minute late is early enough.
	configMapFor = time.Minute
	// configMapTroubleFor: one that is missing is usually about to be created, and one whose address does not answer
	// about to be corrected.
	configMapTroubleFor = 10 * time.Second
	// configMapTimeout bounds one read.
	configMapTimeout = 5 * time.Second
	// maxConfigMaps bounds the memory of it: about 4 MB. Each of 10k policies may name one of its own.
	maxConfigMaps = 20_000
)

// clusters finds the admin URL of a Function's Pulsar cluster.
type clusters struct {
	reader     client.Reader
	defaultURL string
	now        func() time.Time

	// mu guards known.
	mu    sync.Mutex
	known map[types.NamespacedName]clusterAddress
}

// clusterAddress is what a ConfigMap says: a URL, or nothing, or why it cannot be used.
type clusterAddress struct {
	url     string
	invalid string
	until   time.Time
	// readAt is when the ConfigMap said so.
	readAt time.Time
}

// find returns the cluster from, in this order, the policy, the Function's ConfigMap and the default; or why there is
// none and what to do about it. An error is worth a retry.
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
		address, err := c.ofConfigMap(ctx, configMap)
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
	return backlog.Cluster{}, "the admin URL of the Pulsar cluster is unknown: set spec.pulsar.adminURL of the policy, or " + keyWebServiceURL +
		" in the ConfigMap that spec.pulsar.pulsarConfig of the Function names, or the default admin URL of the adapter", nil
}

// ofConfigMap reads a ConfigMap, at most once a minute.
func (c *clusters) ofConfigMap(ctx context.Context, key types.NamespacedName) (clusterAddress, error) {
	now := c.now()
	c.mu.Lock()
	address, seen := c.known[key]
	c.mu.Unlock()
	if seen && now.Before(address.until) {
		return address, nil
	}
	address, err := c.read(ctx, key)
	if err != nil {
		return clusterAddress{}, err
	}
	address.readAt, address.until = now, now.Add(configMapFor)
	if address.invalid != "" {
		address.until = now.Add(configMapTroubleFor)
	}
	c.remember(key, address, now)
	return address, nil
}

// remember keeps an address, and forgets those that are due anyway when there are too many.
func (c *clusters) remember(key types.NamespacedName, address clusterAddress, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= maxConfigMaps {
		maps.DeleteFunc(c.known, func(_ types.NamespacedName, a clusterAddress) bool { return !now.Before(a.until) })
	}
	if len(c.known) >= maxConfigMaps {
		clear(c.known)
	}
	c.known[key] = address
}

// doubt has the ConfigMaps that named the cluster read again soon: it does not answer as a Pulsar cluster should.
func (c *clusters) doubt(cluster backlog.Cluster) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, address := range c.known {
		if soon := address.readAt.Add(configMapTroubleFor); address.url == cluster.AdminURL && soon.Before(address.until) {
			address.until = soon
			c.known[key] = address
		}
	}
}

// read asks the API server. A ConfigMap that is missing or forbidden never falls back to the default cluster: it may
// well name another one, and the same topic names exist there.
func (c *clusters) read(ctx context.Context, key types.NamespacedName) (clusterAddress, error) {
	ctx, cancel := context.WithTimeout(ctx, configMapTimeout)
	defer cancel()
	var configMap corev1.ConfigMap
	err := c.reader.Get(ctx, key, &configMap)
	switch {
	case apierrors.IsNotFound(err):
		return clusterAddress{invalid: fmt.Sprintf("ConfigMap %s, which spec.pulsar.pulsarConfig of the Function names, does not exist: create it, "+
			"or set spec.pulsar.adminURL of the policy", key.Name)}, nil
	case apierrors.IsForbidden(err):
		return clusterAddress{invalid: fmt.Sprintf("ConfigMap %s, which spec.pulsar.pulsarConfig of the Function names, may not be read: grant the adapter "+
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
