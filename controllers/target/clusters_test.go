// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// countingReader has every ConfigMap and counts how often one is read.
type countingReader struct {
	client.Reader
	reads int
}

func (r *countingReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	r.reads++
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return fmt.Errorf("reading a %T", object)
	}
	configMap.Data = map[string]string{keyWebServiceURL: fixture.Cluster().AdminURL}
	return nil
}

// newTestClusters has no credentials.
func newTestClusters(reader client.Reader, defaultURL string, now func() time.Time) *clusters {
	return newClusters(reader, newCredentials(Config{Now: now}), defaultURL, now)
}

func TestConfigMapsAreReadOnceAMinuteForManyPolicies(t *testing.T) {
	reader := &countingReader{}
	now := time.Unix(1_800_000_000, 0)
	c := newTestClusters(reader, "", func() time.Time { return now })
	const many = 10_000
	for range 3 {
		for i := range many {
			cluster, err := c.find(t.Context(), nil,
				types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i), Name: "pulsar"})
			require.NoError(t, err)
			require.Equal(t, fixture.Cluster(), cluster)
		}
		now = now.Add(10 * time.Second)
	}
	require.Equal(t, many, reader.reads)
}

// The client of the API server would refuse it with an error that looks worth a retry.
func TestInvalidConfigMapNameIsReported(t *testing.T) {
	reader := &countingReader{}
	for _, name := range []string{"a/b", "..", "UPPER", "a%2fb"} {
		_, err := newTestClusters(reader, "http://default:8080", time.Now).find(t.Context(), nil,
			types.NamespacedName{Namespace: "media", Name: name})
		require.ErrorAs(t, err, new(*plan.Violation))
		require.ErrorContains(t, err,
			fmt.Sprintf("spec.pulsar.pulsarConfig is %q, which cannot be the name of a ConfigMap", name))
	}
	require.Zero(t, reader.reads)
}

// Each policy of a failing cluster invalidates it at each reconcile.
func TestInvalidateDoesNotIterateConfigMaps(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c := newTestClusters(&countingReader{}, "", func() time.Time { return now })
	for i := range 10_000 {
		_, err := c.find(t.Context(), nil, types.NamespacedName{Namespace: fmt.Sprintf("team-%d", i), Name: "pulsar"})
		require.NoError(t, err)
	}
	c.invalidate(fixture.Cluster())
	c.addresses.mu.Lock() // an iteration would block here
	defer c.addresses.mu.Unlock()
	c.invalidate(fixture.Cluster())
	require.Len(t, c.invalidated.Values(), 1)
}

func TestUnusedConfigMapsExpire(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	targets := newTestTargets(t, []client.Object{fixture.ConfigMap()}, func(c *Config) {
		c.Now = func() time.Time { return now }
	})
	target, err := targets.Finder.target(t.Context(), Decode(fixture.Function()),
		fixture.Policy().Spec.ScaleTargetRef, v1alpha1.AutoscalingPolicySpec{})
	require.NoError(t, err)
	targets.Invalidate(target.Subscription.Cluster)
	require.Len(t, targets.clusters.addresses.known, 1)
	now = now.Add(lookupUnusedTTL)
	targets.Forget(now)
	require.Empty(t, targets.clusters.addresses.known)
}
