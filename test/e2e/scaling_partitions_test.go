// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestScalingAFailoverFunctionFollowsItsBusiestPartition: one replica processes 50/s, so 3 would be enough for the sum.
// With the assignment of partitions to 3 replicas, two of them would get 50/s each, and with 4 one would get 80/s.
func TestScalingAFailoverFunctionFollowsItsBusiestPartition(t *testing.T) {
	t.Parallel()
	const name, least, arrivals = "ordered", 5, 110 // a second
	rates := []float64{40, 5, 5, 5, 40, 5, 5, 5}
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 20 * time.Millisecond, StartDelay: time.Second, Partitions: len(rates),
		Edit: func(object *unstructured.Unstructured) {
			require.NoError(t, unstructured.SetNestedField(object.Object, true, "spec", "retainOrdering"))
		},
	})
	published := publishSkewed(t, f, rates)
	addPolicy(t, newPolicy(name))
	f.AwaitReplicas(t, least, int64(len(rates)))

	var drained time.Time
	f.Await(t, "the backlog to drain", func(ctx context.Context) (bool, string, error) {
		drained = time.Now()
		ready, err := waiting(ctx, f)
		return ready < arrivals, fmt.Sprintf("%d of %d messages wait", ready, published()), err
	})
	// The test checks replicas directly: a status with nearly constant numbers is not written for minutes, so its time
	// says nothing about later decisions.
	f.Await(t, "the stabilization window to pass", func(ctx context.Context) (bool, string, error) {
		replicas, err := f.Replicas(ctx)
		return time.Since(drained) > 15*time.Second, fmt.Sprintf("%+v", replicas), err
	})
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Contains(t, p.Status.Decision.Equation, "8 partitions")
	require.NotNil(t, p.Status.Capacity)
	t.Logf("%s: %s/s", p.Status.Decision.Equation, &p.Status.Capacity.MessagesPerSecond)
	reached := false
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, name) {
		require.LessOrEqual(t, sample.Desired, len(rates), "a replica more would have no partition")
		reached = reached || sample.Desired >= least
		require.True(t, !reached || sample.Desired >= least, "down to %d: the busiest replica has too much", sample.Desired)
	}
	ready, err := waiting(t.Context(), f)
	require.NoError(t, err)
	require.Less(t, ready, int64(5*arrivals), "no partition is left behind")
}

// waiting is the backlog of the last decision. The score cannot count it: publishers use the same sequence numbers.
func waiting(ctx context.Context, f *stage.Function) (int64, error) {
	p, err := f.Policy(ctx)
	if err != nil {
		return 0, err
	}
	if p.Status.Signals == nil || p.Status.Signals.ReadyMessages == nil {
		return math.MaxInt64, nil
	}
	return *p.Status.Signals.ReadyMessages, nil
}

// publishSkewed publishes a rate to each partition until the test ends, and returns a function that counts messages.
func publishSkewed(t *testing.T, f *stage.Function, rates []float64) (published func() int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var group errgroup.Group
	var publishers []*load.Publisher
	for i, rate := range rates {
		p, err := load.New(load.Config{
			ServiceURL: scene.Broker.ServiceURL(),
			Topic:      fmt.Sprintf("%s-partition-%d", f.Topic, i),
		})
		require.NoError(t, err)
		publishers = append(publishers, p)
		t.Cleanup(p.Close)
		group.Go(func() error { return p.Run(ctx, load.Constant(rate)) })
	}
	t.Cleanup(func() {
		cancel()
		require.NoError(t, group.Wait())
	})
	return func() (sum int64) {
		for _, p := range publishers {
			sum += p.Published()
		}
		return sum
	}
}
