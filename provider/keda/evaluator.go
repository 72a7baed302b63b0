// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

// evaluator evaluates triggers from the cache. It is safe for concurrent use.
type evaluator struct {
	config Config
	last   *lastAnswers

	// mu guards deadSince.
	mu sync.Mutex
	// deadSince is since when no decision maker is alive; zero while one is.
	deadSince time.Time
}

// evaluate returns the trigger's sample, or the last known one.
func (e *evaluator) evaluate(t Trigger, now time.Time) resolved {
	found, err := newSample(t, e.observe(t, now))
	if err != nil {
		found = e.running(t, err, now)
	}
	result := e.last.resolve(t, found, err, now)
	if result.isTransition() {
		e.report(t, result, now)
	}
	if err != nil && result.state == held {
		replicas, noReplicas := e.config.ScaledObjects.Replicas(t.Object)
		result.sample, result.err = result.sample.atLeast(replicas, noReplicas, err)
	}
	return result
}

// running is a sample with the running replicas, for a trigger without a response of Pulsar yet: KEDA may scale to zero
// on an error. It is inactive if none run, or for a mistake of the user.
func (e *evaluator) running(t Trigger, why error, now time.Time) Sample {
	if t.followsPolicy() || answer.IsMisconfigured(why) {
		return Sample{}
	}
	spec, err := e.spec(t, now)
	if err != nil {
		return Sample{}
	}
	replicas, err := e.config.ScaledObjects.Replicas(t.Object)
	if err != nil || replicas == 0 {
		return Sample{}
	}
	return Sample{Spec: spec, Value: float64(replicas) * spec.Target, Active: true}
}

// observe reads the trigger's inputs from the cache.
func (e *evaluator) observe(t Trigger, now time.Time) observed {
	o := observed{now: now}
	if t.Subject.Policy != "" {
		if o.policy, o.noPolicy = e.policy(t); o.noPolicy != nil {
			return o
		}
	}
	switch {
	case t.followsPolicy():
		if o.oldSince, o.old = e.old(o.policy, now); o.old != nil || served.Paused(o.policy) {
			o.replicas, o.noReplicas = e.config.ScaledObjects.Replicas(t.Object)
		}
	default:
		o.reading, o.noReading = e.config.Signals.Read(t.Subject, now)
		if t.Strategy == v1alpha1.StrategyUtilization || lost(o) { // expensive, and only needed here
			o.replicas, o.noReplicas = e.config.ScaledObjects.Replicas(t.Object)
		}
	}
	return o
}

func (e *evaluator) policy(t Trigger) (*v1alpha1.AutoscalingPolicy, error) {
	return e.config.Policies.Policy(types.NamespacedName{Namespace: t.Subject.Namespace, Name: t.Subject.Policy})
}

// old returns since when the policy's decision is too old to follow, and why; nil if it is current.
func (e *evaluator) old(p *v1alpha1.AutoscalingPolicy, now time.Time) (since time.Time, why error) {
	err := e.config.DecisionMaker.Current(p, now)
	var dated interface{ Since() time.Time }
	if errors.As(err, &dated) && !dated.Since().IsZero() {
		return dated.Since(), err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.deadSince = time.Time{}
	case e.deadSince.IsZero():
		e.deadSince = now
	}
	return e.deadSince, err
}

// spec returns the current divisor for KEDA, or the last one.
func (e *evaluator) spec(t Trigger, now time.Time) (Spec, error) {
	if !t.borrowsThreshold() {
		return specOf(t, nil)
	}
	p, err := e.policy(t)
	if err != nil {
		return e.last.resolveSpec(t, Spec{}, unread(t.Subject, err), now)
	}
	spec, err := specOf(t, p)
	return e.last.resolveSpec(t, spec, err, now)
}

// report logs when a trigger becomes known or unknown.
func (e *evaluator) report(t Trigger, result resolved, now time.Time) {
	log := e.config.Logger.With("scaledObject", t.Object.String(), "subject", t.Subject.describe(), "metric", metricOf(t))
	switch result.state {
	case held:
		log.Warn("trigger is unknown, holding replicas", "heldFor", e.config.HoldFor.String(),
			"since", result.since.UTC().Format(time.RFC3339), "reason", result.why)
	case misconfigured:
		log.Error("trigger names a missing object, responding with an error", "reason", result.why)
	case expired:
		log.Error("trigger was unknown for too long, responding with an error",
			"unknownFor", now.Sub(result.since).Truncate(time.Second).String(), "reason", result.why)
	default:
		log.Info("trigger is known again")
	}
}
