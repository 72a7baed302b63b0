// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene has the objects of the benchmark, and records their changes.
type scene struct {
	client client.WithWatch
	loads  fake.Loads
	// autoscalers, statuses and scales record the HorizontalPodAutoscalers, the policies and the Functions.
	autoscalers, statuses, scales ledger
}

func functionName(i int) string { return fmt.Sprintf("fn-%04d", i) }

// newLoads have means from 15 to 90 messages per second, which need 1 to 6 replicas. They vary by up to 80 %.
func newLoads(n int, now time.Time) fake.Loads {
	const lowest, highest = 15, 90
	loads := make(fake.Loads, n)
	for i := range n {
		share := float64(i) / float64(n)
		mean, phase := lowest+(highest-lowest)*share, math.Mod(share*17, 1)
		loads[functionName(i)] = fake.NewLoad(mean, phase, fake.Waves{Slow: 0.5, Fast: 0.3}, now)
	}
	return loads
}

// createFunctions creates all Functions, with the status that Function Mesh sets.
func (s *scene) createFunctions(ctx context.Context, adminURL string) error {
	return fake.CreateFunctions(ctx, s.client, slices.Collect(maps.Keys(s.loads)), fake.FunctionConfig{
		AdminURLs: []string{adminURL}, Replicas: 1, ServiceTime: time.Second / fake.Capacity,
	})
}

func (s *scene) createPolicies(ctx context.Context) error {
	return fake.CreatePolicies(ctx, s.client, slices.Collect(maps.Keys(s.loads)), 20)
}

// watch starts to record changes, and to follow the replicas of Functions.
func (s *scene) watch(ctx context.Context, group *errgroup.Group) {
	counting := func(l *ledger) func(watch.Event) error {
		return func(event watch.Event) error {
			l.take(event.Type, time.Now())
			return nil
		}
	}
	group.Go(func() error {
		return fake.Follow(ctx, s.client, &autoscalingv2.HorizontalPodAutoscalerList{}, stage.Namespace,
			counting(&s.autoscalers))
	})
	group.Go(func() error {
		return fake.Follow(ctx, s.client, &v1alpha1.AutoscalingPolicyList{}, stage.Namespace, counting(&s.statuses))
	})
	group.Go(func() error {
		return fake.FollowFunctions(ctx, s.client, stage.Namespace, func(function string, replicas int) {
			s.scales.take(watch.Modified, time.Now())
			s.loads[function].Scale(replicas, time.Now())
		})
	})
}
