// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// scene has the objects of the benchmark, and records their changes.
type scene struct {
	client client.WithWatch
	works  map[string]*work
	// autoscalers, statuses and scales record the HorizontalPodAutoscalers, the policies and the Functions.
	autoscalers, statuses, scales ledger
}

func functionName(i int) string { return fmt.Sprintf("fn-%04d", i) }

func newWorks(n int, now time.Time) map[string]*work {
	works := make(map[string]*work, n)
	for i := range n {
		works[functionName(i)] = newWork(i, n, now)
	}
	return works
}

// createFunctions creates all Functions, with the status that Function Mesh sets.
func (s *scene) createFunctions(ctx context.Context, adminURL string) error {
	return fake.CreateFunctions(ctx, s.client, slices.Collect(maps.Keys(s.works)), fake.FunctionConfig{
		AdminURL: adminURL, Replicas: 1, ServiceTime: time.Second / capacity,
	})
}

func (s *scene) createPolicies(ctx context.Context) error {
	return fake.Each(ctx, slices.Collect(maps.Keys(s.works)), func(ctx context.Context, name string) error {
		if err := s.client.Create(ctx, testbed.Policy(name, 1, 20, time.Minute)); err != nil {
			return fmt.Errorf("creating policy %s: %w", name, err)
		}
		return nil
	})
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
			s.works[function].scale(replicas, time.Now())
		})
	})
}

// pulsarOf returns the load of each Function so far.
func pulsarOf(works map[string]*work, now func() time.Time) fake.Pulsar {
	return func(function string) (fake.Counts, bool) {
		one := works[function]
		if one == nil {
			return fake.Counts{}, false
		}
		return one.counts(now()), true
	}
}
