// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// writers create objects at the same time.
	writers = 16
	// pulsarConfig is the ConfigMap that all Functions name.
	pulsarConfig = "pulsar"
)

// scene has the objects of the benchmark, and notes what becomes of them.
type scene struct {
	client client.WithWatch
	works  map[string]*work
	// autoscalers, statuses and scales are what the API server was told about HorizontalPodAutoscalers, policies and
	// Functions.
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

// createFunctions creates all Functions, with the status that Function Mesh gives them.
func (s *scene) createFunctions(ctx context.Context, adminURL string) error {
	if err := s.client.Create(ctx,
		mesh.PulsarConfig(stage.Namespace, pulsarConfig, adminURL, "pulsar://127.0.0.1:6650")); err != nil {
		return fmt.Errorf("creating the pulsarConfig: %w", err)
	}
	return s.each(ctx, func(ctx context.Context, name string) error {
		function := mesh.Function(stage.Namespace, name, mesh.FunctionConfig{
			Topics: []string{fake.TopicOf(name)}, PulsarConfig: pulsarConfig, Replicas: 1, ServiceTime: time.Second / capacity,
		})
		if err := s.client.Create(ctx, function); err != nil {
			return fmt.Errorf("creating Function %s: %w", name, err)
		}
		return fake.Report(ctx, s.client, function)
	})
}

func (s *scene) createPolicies(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, name string) error {
		p := &v1alpha1.AutoscalingPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name},
			Spec: v1alpha1.AutoscalingPolicySpec{
				ScaleTargetRef: v1alpha1.ScaleTargetRef{
					APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: name,
				},
				MinReplicas: new(int32(1)), MaxReplicas: 20, LatencyObjective: metav1.Duration{Duration: time.Minute},
			},
		}
		if err := s.client.Create(ctx, p); err != nil {
			return fmt.Errorf("creating policy %s: %w", name, err)
		}
		return nil
	})
}

// each does something for every Function, several at once.
func (s *scene) each(ctx context.Context, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for name := range s.works {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// watch starts to note what happens, and to follow the replicas of Functions.
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

// pulsarOf says of each Function what its load has come to.
func pulsarOf(works map[string]*work, now func() time.Time) fake.Pulsar {
	return func(function string) (fake.Counts, bool) {
		one := works[function]
		if one == nil {
			return fake.Counts{}, false
		}
		return one.counts(now()), true
	}
}
