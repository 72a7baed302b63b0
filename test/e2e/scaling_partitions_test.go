// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestScalingAFailoverFunctionFollowsItsBusiestPartition: one replica processes 50/s, so 3 would be enough for the sum.
// With the assignment of partitions to 3 replicas, two of them would get 50/s each, and with 4 one would get 80/s.
func TestScalingAFailoverFunctionFollowsItsBusiestPartition(t *testing.T) {
	t.Parallel()
	const name, least = "ordered", 5
	rates := []float64{40, 5, 5, 5, 40, 5, 5, 5}
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 20 * time.Millisecond, StartDelay: time.Second, Partitions: len(rates),
		Edit: func(object *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(object.Object, true, "spec", "retainOrdering"))
		},
	})
	publishSkewed(t, f, rates)
	addPolicy(t, newPolicy(name))
	f.AwaitReplicas(t, least, int64(len(rates)))
	f.AwaitPolicy(t, "a decision by partition", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Decision != nil && strings.Contains(p.Status.Decision.Equation, "8 partitions")
	})
	require.LessOrEqual(t, slices.Max(scene.Mesh.Desired(stage.Namespace, name, time.Time{})), len(rates),
		"a replica more would have no partition")
}

// publishSkewed publishes a rate to each partition until the test ends.
func publishSkewed(t *testing.T, f *stage.Function, rates []float64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	for i, rate := range rates {
		p, err := load.New(load.Config{
			ServiceURL: scene.Broker.ServiceURL(),
			Topic:      fmt.Sprintf("%s-partition-%d", f.Topic, i),
		})
		require.NoError(t, err)
		t.Cleanup(p.Close)
		group.Go(func() error { return p.Run(ctx, load.Constant(rate)) })
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, group.Wait())
	})
}
