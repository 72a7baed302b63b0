// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/fake"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// together is the number of control planes prepared in parallel: KEDA takes 150 s for 300 ScaledObjects and uses
	// little CPU, since it waits for its own request limit. Their bursts follow one after another.
	together = 2
	// burstMessages are published to each Function; no replica processes them.
	burstMessages = 1000
	// burstThreshold is the backlog of 50 messages a second in half of burstObjective.
	burstObjective = 30 * time.Second
	burstThreshold = 750
	// calm is the pause between KEDA's last autoscaler and the burst: one and a half pollingIntervals, for requests
	// delayed by its client's limit.
	// up.
	calm = 45 * time.Second
	// burstTimeout is 4 times the duration of KEDA's pull.
	burstTimeout = 2 * time.Minute
)

// burstRun is a control plane with many Functions that one contender scales.
type burstRun struct {
	*environment

	contender string
	crowd     *crowd
	client    client.WithWatch
	setUp     time.Duration
	group     *errgroup.Group
	stop      context.CancelFunc
}

// bursts runs the part burst.
func bursts(ctx context.Context, o options, r *report, progress io.Writer) error {
	begun := time.Now()
	for names := range slices.Chunk(o.of(partBurst), together) {
		if err := burstOf(ctx, names, o, r, &environment{progress: progress, begun: begun}); err != nil {
			return err
		}
	}
	return nil
}

// burstOf prepares the bursts of the contenders in parallel, and runs them one after another.
func burstOf(ctx context.Context, names []string, o options, r *report, teller *environment) (err error) {
	runs := make([]*burstRun, len(names))
	defer func() {
		for _, one := range runs {
			if one != nil {
				err = errors.Join(err, one.end())
			}
		}
	}()
	preparing, preparingCtx := errgroup.WithContext(ctx)
	for i, name := range names {
		runs[i] = newBurstRun(ctx, name, o, teller)
		preparing.Go(func() error {
			if err := runs[i].prepare(preparingCtx, o); err != nil {
				return fmt.Errorf("preparing the burst of %s: %w", name, err)
			}
			return nil
		})
	}
	if err := preparing.Wait(); err != nil {
		return err
	}
	teller.tell("burst: waiting for %s", calm)
	if err := command.Pause(ctx, calm); err != nil {
		return err
	}
	for i, one := range runs {
		a, err := one.run(ctx)
		if err != nil {
			return fmt.Errorf("burst of %s: %w", one.contender, err)
		}
		r.of(one.contender).awakening = a
		teller.tell("burst: %s: %s woke, p50 %s s, p99 %s s", one.contender, of(a.BurstWoke, a.BurstTargets),
			output.Number(a.BurstP50Seconds, 1), output.Number(a.BurstP99Seconds, 1))
		runs[i] = nil
		if err := one.end(); err != nil {
			return err
		}
	}
	return nil
}

func newBurstRun(ctx context.Context, contender string, o options, teller *environment) *burstRun {
	s := &burstRun{
		contender: contender, crowd: newCrowd(o.burst),
		environment: &environment{progress: teller.progress, begun: teller.begun},
	}
	ctx, s.stop = context.WithCancel(ctx)
	s.group, _ = errgroup.WithContext(ctx)
	return s
}

// end stops everything, and returns the error of a part that ended before.
func (s *burstRun) end() error {
	s.stop()
	err := s.group.Wait()
	s.Close()
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// prepare starts the stage and creates the Functions and their autoscalers. All of it lives until end.
func (s *burstRun) prepare(ctx context.Context, o options) error {
	lifetime, stop := context.WithCancel(context.WithoutCancel(ctx))
	before := s.stop
	s.stop = func() { stop(); before() }
	adminURL, err := fake.Pulsar(s.crowd.counts).Serve(lifetime, s.group)
	if err != nil {
		return err
	}
	s.tell("burst: a control plane for %s", s.contender)
	config := stageConfig(adminURL, s.progress)
	config.AdminURL = adminURL
	if s.Stage, s.closeStage, err = testbed.Open(ctx, config); err != nil {
		return err
	}
	if s.client, err = client.NewWithWatch(s.Cluster.RESTConfig(), client.Options{Scheme: s.Client.Scheme()}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	functions := fake.FunctionConfig{AdminURLs: []string{adminURL}, ServiceTime: time.Second}
	if err := fake.CreateFunctions(ctx, s.client, s.crowd.names, functions); err != nil {
		return err
	}
	s.follow(lifetime)
	s.tell("burst: %d objects of %s", len(s.crowd.names), s.contender)
	begun := time.Now()
	jobs := s.jobs(adminURL, o)
	err = fake.Each(ctx, jobs, func(ctx context.Context, j job) error { return s.client.Create(ctx, j.object()) })
	if err != nil {
		return fmt.Errorf("creating autoscalers: %w", err)
	}
	if err := errors.Join(s.waitForAutoscalers(ctx, jobs), s.waitForReadings(ctx, jobs)); err != nil {
		return err
	}
	s.setUp = time.Since(begun)
	s.tell("burst: KEDA has autoscalers for all of %s, after %.0f s", s.contender, s.setUp.Seconds())
	return nil
}

func (s *burstRun) jobs(adminURL string, o options) (jobs []job) {
	for _, name := range s.crowd.names {
		jobs = append(jobs, job{
			contender: s.contender, function: name, topic: fake.TopicOf(name), adminURL: adminURL, scaler: s.scalerAddress(),
			objective: burstObjective, cooldown: o.cooldown, most: mostReplicas, threshold: burstThreshold,
		})
	}
	return jobs
}

// follow records when Functions wake, with its own watch, and keeps their statuses.
func (s *burstRun) follow(ctx context.Context) {
	s.group.Go(func() error {
		return fake.FollowFunctions(ctx, s.client, stage.Namespace, func(string, int) {})
	})
	functions := &unstructured.UnstructuredList{}
	functions.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction + "List"))
	s.group.Go(func() error {
		return fake.Follow(ctx, s.client, functions, stage.Namespace, func(event watch.Event) error {
			now := time.Now()
			function, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Deleted {
				return nil
			}
			replicas, _, err := unstructured.NestedInt64(function.Object, "spec", "replicas")
			if err != nil {
				return fmt.Errorf("reading spec.replicas of %s: %w", function.GetName(), err)
			}
			s.crowd.scaled(function.GetName(), int(replicas), now)
			return nil
		})
	})
}

// run publishes the messages and returns how the Functions woke.
func (s *burstRun) run(ctx context.Context) (awakening, error) {
	if early := s.crowd.early(); len(early) > 0 {
		return awakening{}, fmt.Errorf("%d Functions have replicas without messages, such as %s", len(early), early[0])
	}
	s.tell("burst: %d messages to each Function of %s", burstMessages, s.contender)
	s.crowd.burst(time.Now())
	ctx, cancel := context.WithTimeout(ctx, burstTimeout)
	defer cancel()
	err := cluster.WaitFor(ctx, "all Functions to wake", look, func(context.Context) (bool, string, error) {
		a := s.crowd.awakened()
		return *a.BurstWoke == *a.BurstTargets, of(a.BurstWoke, a.BurstTargets), nil
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return awakening{}, err
	}
	a := s.crowd.awakened()
	a.BurstSetUpSeconds = new(s.setUp.Seconds())
	return a, nil
}
