// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// WorkerChanger changes what function workers run. Errors wrap the reasons of package backlog.
type WorkerChanger interface {
	SetParallelism(ctx context.Context, component backlog.Component, instances int32) error
}

// workerScaler scales what a function worker runs, each at most once in an interval and never one that does not run: a
// stopped one would have its new instances started and its old ones not.
type workerScaler struct {
	worker    WorkerChanger
	functions *workerFunctions
}

func (s workerScaler) scale(ctx context.Context, world policy.World, replicas int32) error {
	component, wrong := componentOf(world.Policy.Spec.PulsarFunctionRef, world.Target.Subscription.Cluster)
	switch {
	case wrong != "":
		return errors.New(wrong) // Check saw to it that this cannot be
	case world.Target.Stopped || world.Target.Frozen != nil || s.functions.wroteWithin(component, s.functions.every):
		return errNotNow
	}
	// It may have been stopped since its consumers were counted.
	status, err := s.functions.worker.Status(ctx, component)
	if err != nil {
		return fmt.Errorf("looking whether it runs: %w", err)
	}
	if status.Stopped() {
		s.functions.sawIdle(component)
		return errNotNow
	}
	s.functions.wrote(component)
	return s.worker.SetParallelism(ctx, component, max(1, replicas))
}
