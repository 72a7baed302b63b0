// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// WorkerChanger changes what function workers run. Errors wrap the reasons of package backlog.
type WorkerChanger interface {
	SetParallelism(ctx context.Context, component function.Component, instances int32) error
}

// workerScaler scales functions of a function worker, each at most once in an interval and only while it runs.
type workerScaler struct {
	worker    WorkerChanger
	functions *target.Workers
}

func (s workerScaler) scale(ctx context.Context, observed plan.Observed, replicas int32) error {
	component, wrong := target.Component(observed.Policy.Spec.PulsarFunctionRef, observed.Target.Subscription.Cluster)
	switch {
	case wrong != "":
		return errors.New(wrong) // Check prevents this
	case observed.Target.Stopped || observed.Target.Frozen != nil:
		return errNotNow
	}
	begun, err := s.functions.BeginUpdate(ctx, component)
	if err != nil {
		return err
	}
	if !begun {
		return errNotNow
	}
	return s.worker.SetParallelism(ctx, component, max(1, replicas))
}
