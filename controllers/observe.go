// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/schedule"
)

// observer reads the input of a decision, all of it from caches.
type observer struct {
	config reconcilerConfig
	// latest returns the policy that this process wrote last, if that is newer than the one in the cache.
	latest func(*v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy
}

// observe reads everything from Kubernetes that a decision about the policy needs. The actuator is not chosen yet.
func (o observer) observe(ctx context.Context, p *v1alpha1.AutoscalingPolicy, now time.Time) (plan.Observed, error) {
	subject, err := o.observeSubject(ctx, p, now)
	observed := plan.Observed{Subject: subject, Autoscalers: plan.Autoscalers{Capabilities: o.config.Capabilities()}}
	if err != nil {
		return observed, err
	}
	if err := o.observeConflicts(ctx, subject, &observed.Autoscalers); err != nil {
		return observed, err
	}
	if err := o.observePrecedence(ctx, p, &observed.Autoscalers); err != nil {
		return observed, err
	}
	observed.Violation = plan.Check(subject, observed.Autoscalers)
	return observed, nil
}

// observeSubject reads what holds for the policy now, and its target.
func (o observer) observeSubject(ctx context.Context, p *v1alpha1.AutoscalingPolicy, now time.Time) (
	subject plan.Subject, err error,
) {
	subject.Now, subject.Policy = now, p
	subject.Limits, subject.BadSchedule = schedule.At(p.Spec, now)
	if subject.AllPaused, err = o.allPaused(ctx); err != nil {
		return subject, err
	}
	subject.Target, err = o.config.Targets.Finder.Find(ctx, p.Namespace, p.Spec)
	if errors.As(err, &subject.Unfit) {
		return subject, nil
	}
	if err != nil {
		return subject, fmt.Errorf("finding the target: %w", err)
	}
	if subject.Target, err = o.config.Targets.Finder.Describe(ctx, p.Namespace, subject.Target); err != nil {
		return subject, fmt.Errorf("describing the target: %w", err)
	}
	return subject, nil
}

// scaledKeys are the keys of the objects on which another autoscaler would conflict; until the target is found, those
// that the policy names.
func scaledKeys(p *v1alpha1.AutoscalingPolicy, found *plan.Target) []string {
	if found == nil {
		return target.Keys(p)
	}
	var keys []string
	for _, ref := range found.Scaled {
		keys = append(keys, keyOf(ref))
	}
	return keys
}

func keyOf(ref v1alpha1.ScaleTargetRef) string { return target.Key(ref.APIVersion, ref.Kind, ref.Name) }
