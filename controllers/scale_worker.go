// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// WorkerChanger changes what function workers run. Errors wrap the reasons of package backlog.
type WorkerChanger interface {
	SetParallelism(ctx context.Context, component function.Component, instances int32) error
}

// errEarlier marks what a reconcile before this one began.
var errEarlier = errors.New("the last update failed")

// updateWorker scales a function of a function worker, at most once in an interval and only while it runs. No reconcile
// waits for a worker, so that a later one reports what failed.
func (a applier) updateWorker(ctx context.Context, subject plan.Subject, replicas int32) error {
	component, err := target.Component(subject.Policy.Spec.PulsarFunctionRef, subject.Target.Subscription.Cluster)
	switch {
	case err != nil:
		return err // Check prevents this
	case subject.Target.Stopped || subject.Target.Frozen != nil:
		return nil // a later reconcile scales; the decision shows the hold
	}
	policy := *subject.Policy // the reconcile goes on to write its own
	subject.Policy = &policy
	a.targets.Workers.Update(ctx, client.ObjectKeyFromObject(&policy), component, func(ctx context.Context) error {
		return a.worker.SetParallelism(ctx, component, max(1, replicas))
	}, func(err error) { _ = a.metrics.scaled(ctx, subject, replicas, err) }) // updateFailed returns it
	return nil
}

// resumeUpdates has the interval between two updates go on after a fail-over: the last decision that changed the
// replicas began one.
func (a applier) resumeUpdates(subject plan.Subject, decided time.Time) {
	if component, ok := updates(subject); ok {
		a.targets.Workers.Resume(component, decided)
	}
}

// updates is what the policy updates at a function worker; false if no worker runs its target, or if it updates none,
// as beside another policy that does.
func updates(subject plan.Subject) (component function.Component, ok bool) {
	if subject.Target == nil || subject.Target.Scaling != plan.ByWorker || !subject.Applies() {
		return component, false
	}
	component, err := target.Component(subject.Policy.Spec.PulsarFunctionRef, subject.Target.Subscription.Cluster)
	return component, err == nil
}

// unlessEarlier is the error, or nil if it is of what an earlier reconcile began: that is in the status.
func unlessEarlier(err error) error {
	if errors.Is(err, errEarlier) {
		return nil
	}
	return err
}

// updateFailed is why the last update of the target failed; nil if it did not, or if the policy begins none.
func (a applier) updateFailed(subject plan.Subject) error {
	component, ok := updates(subject)
	if !ok {
		return nil
	}
	if err := a.targets.Workers.UpdateFailed(component); err != nil {
		return fmt.Errorf("%w: %w", errEarlier, err)
	}
	return nil
}
