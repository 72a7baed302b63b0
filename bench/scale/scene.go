// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// replicas of a Function at the start, and its minReplicas: otherwise all would scale down together.
	// lowest and highest are means of its load, which need 6 to 12 of them.
	replicas        = 10
	lowest, highest = 120, 240
	// changesPerMinute is the share of policies that change in a minute, and swing how far a load changes.
	changesPerMinute, swing = 0.1, 1.0 / 3
)

// scene has the objects of the benchmark.
type scene struct {
	bench  bench
	client client.WithWatch
	names  []string
	means  []float64
	loads  fake.Loads
	burst  *burst
	// podPort serves the counters of all pods; 0 for none.
	podPort int
}

// newScene starts the brokers, and returns their URLs.
func (b bench) newScene(ctx context.Context, policies int) (sc *scene, urls []string, err error) {
	sc = &scene{bench: b, loads: fake.Loads{}}
	for i := range policies {
		name, mean := fmt.Sprintf("fn-%05d", i), lowest+(highest-lowest)*float64(i)/float64(policies)
		sc.names, sc.means = append(sc.names, name), append(sc.means, mean)
		sc.loads[name] = fake.NewLoad(mean, time.Now())
		sc.loads[name].Scale(replicas, time.Now())
	}
	sc.burst = newBurst(sc.names)
	pulsar := sc.loads.Pulsar(time.Now)
	noisy := fake.Pulsar(func(function string) (fake.Counts, bool) {
		counts, known := pulsar(function)
		if counts.Replicas > 0 { // each replica works on a message or two
			counts.Unacked = min(counts.Done, rand.Int64N(int64(2*counts.Replicas)))
		}
		return counts, known
	})
	for range brokers {
		urls = append(urls, noisy.Serve(ctx))
	}
	if b.scraped {
		sc.podPort, err = serveInstances(ctx)
	}
	return sc, urls, err
}

// create creates everything but the adapter.
func (s *scene) create(ctx context.Context, urls []string) error {
	s.bench.tell("creating %d Functions", len(s.names))
	functions := fake.FunctionConfig{AdminURLs: urls, Replicas: replicas, ServiceTime: time.Second / fake.Capacity}
	if err := fake.CreateFunctions(ctx, s.client, s.names, functions); err != nil {
		return err
	}
	s.bench.tell("creating their StatefulSets and %d pods", len(s.names)*s.bench.pods)
	if err := fake.Each(ctx, s.names, s.createPods); err != nil {
		return err
	}
	s.bench.tell("creating %d policies", len(s.names))
	return fake.Each(ctx, s.names, func(ctx context.Context, name string) error {
		policy := stage.NewPolicy(name, replicas, 2*replicas, time.Minute)
		policy.Spec.Actuator = v1alpha1.Actuator(s.bench.actuator)
		if err := s.client.Create(ctx, policy); err != nil {
			return fmt.Errorf("creating policy %s: %w", name, err)
		}
		return nil
	})
}

// createPods creates the StatefulSet of a Function and its pods.
func (s *scene) createPods(ctx context.Context, function string) error {
	set, err := statefulSet(function)
	if err != nil {
		return err
	}
	if err := s.client.Create(ctx, set.DeepCopy()); err != nil {
		return fmt.Errorf("creating StatefulSet %s: %w", set.Name, err)
	}
	for i := range s.bench.pods {
		if err := s.createPod(ctx, set, i); err != nil {
			return err
		}
	}
	return s.reportReady(ctx, set, replicas)
}

func (s *scene) createPod(ctx context.Context, set *appsv1.StatefulSet, ordinal int) error {
	made := pod(set, ordinal, s.podPort)
	status := made.Status
	if err := s.client.Create(ctx, made); err != nil {
		return fmt.Errorf("creating pod %s: %w", made.Name, err)
	}
	made.Status = status // a new pod has none
	if err := s.client.Status().Update(ctx, made); err != nil {
		return fmt.Errorf("writing the status of pod %s: %w", made.Name, err)
	}
	return nil
}

// follow makes Functions, their pods and their loads follow their replicas.
func (s *scene) follow(ctx context.Context, group *errgroup.Group) {
	scaled := func(function string, replicas int) func(context.Context) error {
		s.loads[function].Scale(replicas, time.Now())
		before := s.burst.scaled(function, replicas, time.Now())
		return func(ctx context.Context) error { return s.scalePods(ctx, function, before, replicas) }
	}
	group.Go(func() error { return fake.FollowFunctions(ctx, s.client, stage.Namespace, 0, scaled) })
	group.Go(func() error { return s.burst.follow(ctx, s) })
}

// churn changes a tenth of the policies in each minute until ctx ends: one gets another load, the next another pod, and
// after all had a turn the other way round.
func (s *scene) churn(ctx context.Context) error {
	interval := time.Duration(float64(time.Minute) / (changesPerMinute * float64(len(s.names))))
	for i := 0; command.Pause(ctx, interval) == nil; i++ {
		at, load := change(i, len(s.names))
		var err error
		if load || s.bench.pods == 0 {
			s.loads[s.names[at]].Publish(s.means[at]*(1-swing+2*swing*rand.Float64()), time.Now())
		} else {
			err = s.replacePod(ctx, s.names[at])
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// change is the policy of a change, and whether it gets another load.
func change(number, policies int) (policy int, load bool) {
	const stride = 104_729 // a prime number above the most policies, so that all get their turn
	return number * stride % policies, (number%policies+number/policies)%2 == 0
}

// replacePod replaces the pod that stays whatever the number of replicas.
func (s *scene) replacePod(ctx context.Context, function string) error {
	set, err := statefulSet(function)
	if err != nil {
		return err
	}
	if err := s.deletePod(ctx, set, 0); err != nil {
		return err
	}
	return s.createPod(ctx, set, 0)
}

// scalePods makes a StatefulSet and its pods follow.
func (s *scene) scalePods(ctx context.Context, function string, before, after int) error {
	set, err := statefulSet(function)
	if err != nil || s.bench.pods == 0 {
		return err
	}
	spec := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, after))
	if err := s.client.Patch(ctx, set.DeepCopy(), spec); err != nil {
		return fmt.Errorf("scaling StatefulSet %s: %w", set.Name, err)
	}
	if err := s.reportReady(ctx, set, after); err != nil {
		return err
	}
	ordinals := func(scaled int) int { return max(1, s.bench.pods+scaled-replicas) }
	from, to := ordinals(before), ordinals(after)
	for i := from; i < to; i++ {
		if err := s.createPod(ctx, set, i); err != nil {
			return err
		}
	}
	for i := from - 1; i >= to; i-- {
		if err := s.deletePod(ctx, set, i); err != nil {
			return err
		}
	}
	return nil
}

// reportReady writes the status of a StatefulSet, with all replicas ready.
func (s *scene) reportReady(ctx context.Context, set *appsv1.StatefulSet, replicas int) error {
	status := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"status":{"replicas":%[1]d,"readyReplicas":%[1]d,"updatedReplicas":%[1]d}}`, replicas))
	if err := s.client.Status().Patch(ctx, set.DeepCopy(), status); err != nil {
		return fmt.Errorf("writing the status of StatefulSet %s: %w", set.Name, err)
	}
	return nil
}

func (s *scene) deletePod(ctx context.Context, set *appsv1.StatefulSet, ordinal int) error {
	if err := s.client.Delete(ctx, pod(set, ordinal, 0), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("deleting a pod of %s: %w", set.Name, err)
	}
	return nil
}
