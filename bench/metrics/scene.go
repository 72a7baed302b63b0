// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// function is the name of the Function and of its policy.
	function = "measured"
	// messagesPerSecond and serviceTime use one replica to a fifth, so that measurements and decisions continue with
	// little load on the machine.
	messagesPerSecond = 20
	serviceTime       = 10 * time.Millisecond
	objective         = 30 * time.Second
)

// questions are the decision, which the HorizontalPodAutoscaler of a policy requests, and a signal, which a user's own
// may request.
func questions() []question {
	return []question{
		{v1alpha1.GroupResource().String(), function, served.MetricDesiredReplicas},
		{"functions." + mesh.GroupVersion().Group, function, "pulsar_function_backlog_ready_messages"},
	}
}

// onScene opens the stage with a Function, a policy and a load, runs work on it, and removes everything.
func onScene(ctx context.Context, config stage.Config, work func(context.Context, *stage.Stage) error) error {
	s, err := stage.Open(ctx, config)
	if err != nil {
		return fmt.Errorf("setting the stage: %w", err)
	}
	defer s.Close()
	f, err := s.AddFunction(ctx, stage.FunctionConfig{Name: function, Kind: stage.Light, ServiceTime: serviceTime})
	if err != nil {
		return fmt.Errorf("adding the Function: %w", err)
	}
	defer func() { _ = f.Remove(ctx) }() // stops its publisher; the rest ends with the stage
	if err := s.Client.Create(ctx, stage.NewPolicy(function, 1, 20, objective)); err != nil {
		return fmt.Errorf("creating the policy: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	publishing, stop := context.WithCancel(ctx)
	group.Go(func() error { return f.Publish(publishing, load.Constant(messagesPerSecond)) })
	group.Go(func() error {
		defer stop()
		return work(ctx, s)
	})
	return group.Wait()
}

// awaitServed waits until every question succeeds on every route.
func awaitServed(ctx context.Context, s *stage.Stage, routes []route) error {
	const pollEvery = 200 * time.Millisecond
	for _, r := range routes {
		for _, q := range questions() {
			what := q.metric + " to be served on route " + r.name
			err := cluster.WaitFor(ctx, what, pollEvery, func(ctx context.Context) (bool, string, error) {
				_, err := timed(ctx, func(ctx context.Context) error { return r.ask(ctx, q) })
				return err == nil, "", err
			})
			if err != nil {
				return fmt.Errorf("%w; the adapter's last lines:\n%s", err, s.Adapter.LogTail())
			}
		}
	}
	return nil
}
