// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Sample is the answer to a trigger at one time.
type Sample struct {
	Spec Spec
	// Value in the unit of the spec's target, from 0 to 9e12, for all replicas together.
	Value float64
	// Active says that there is something to do, so that there must be a replica.
	Active bool
	// HeldSince is since when what it rests on has been unknown, by what was read; zero while it is known.
	HeldSince time.Time
	// Held is why, in words for the user; empty while it is known.
	Held string
}

// facts are what an answer follows from. Of each only what the trigger needs is read.
type facts struct {
	now time.Time
	// policy, or why there is none.
	policy   *v1alpha1.AutoscalingPolicy
	noPolicy error
	// undecided is why no decisions are made for policies, since deadSince; nil while they are.
	undecided error
	deadSince time.Time
	// reading of the subject, or why there is none.
	reading   backlog.Reading
	noReading error
	// replicas of the ScaledObject, or why they are unknown.
	replicas   int32
	noReplicas error
}

// sample is the answer that follows from the facts, or why there is none.
func sample(t Trigger, f facts) (Sample, error) {
	if f.noPolicy != nil {
		return Sample{}, unread(t.Subject, f.noPolicy)
	}
	spec, err := specOf(t, f.policy)
	if err != nil {
		return Sample{}, err
	}
	answer := Sample{Spec: spec}
	switch {
	case t.followsPolicy():
		err = answer.follow(f)
	default:
		err = answer.measure(t, f)
	}
	if err != nil {
		return Sample{}, err
	}
	if math.IsNaN(answer.Value) || math.IsInf(answer.Value, 0) {
		return Sample{}, newFault(errUnknown, "the measurement is not a number (%g)", answer.Value)
	}
	answer.Value = min(max(answer.Value, 0), largest)
	return answer, nil
}

// keep is the last answer while it is held, for no less than the replicas that there are: it was right for one moment,
// and the cooldown of KEDA and the stabilization of its HorizontalPodAutoscaler, minutes, are there to see whether more
// follows. That there is nothing to do is not said where replicas are unknown: KEDA would take the last one away.
func (s Sample) keep(current int32, noReplicas, why error) (Sample, error) {
	switch {
	case noReplicas == nil:
		s.Active = s.Active || current > 0
		s.Value = min(max(s.Value, float64(current)*s.Spec.Target), largest)
	case !s.Active:
		return Sample{}, newFault(errUnknown, "%s; whether there are replicas to keep is unknown too: %s", why, noReplicas)
	}
	return s, nil
}

// follow the decision of the policy, which its status keeps while what it rests on is unknown.
func (s *Sample) follow(f facts) error {
	served, err := plan.LastDecided(f.policy)
	if err != nil {
		return undecided(err)
	}
	s.Value, s.Active = float64(served.Replicas), served.Replicas > 0 && !plan.BeingWoken(f.policy, f.now)
	s.HeldSince, s.Held = served.HeldSince, served.Held
	if f.undecided != nil && (s.Held == "" || f.deadSince.Before(s.HeldSince)) {
		s.HeldSince, s.Held = f.deadSince, f.undecided.Error()
	}
	return nil
}

// measure the signal of the strategy.
func (s *Sample) measure(t Trigger, f facts) error {
	if lost(f) && f.noReplicas == nil && f.replicas == 0 {
		// What is published before a replica recreates the subscription would be lost, so one replica is requested.
		s.Value, s.Active = s.Spec.Target, true
		return nil
	}
	if f.noReading != nil {
		return unread(t.Subject, f.noReading)
	}
	var err error
	if s.Active, err = active(f.reading, t.ActivationMessages); err != nil {
		return err
	}
	var value backlog.Measurement
	switch t.Strategy {
	case v1alpha1.StrategyBacklogPerReplica:
		value = f.reading.Ready
	case v1alpha1.StrategyRatePerReplica:
		value = f.reading.PublishRate
	default:
		value = busy(f)
	}
	if s.Value, err = value.Value(); err != nil {
		return newFault(errUnknown, "%s of %s: %s", s.Spec.Metric, t.Subject.describe(), err)
	}
	return nil
}

// lost says that Pulsar says that the subscription is not there.
func lost(f facts) bool {
	return errors.Is(f.noReading, backlog.ErrSubscriptionNotFound) && !errors.Is(f.noReading, backlog.ErrStale)
}

// active says whether there is something to do: enough messages wait, or some are being worked on. A pool that keeps up
// has no backlog at the moment of a poll. One with delayed messages stays active: Pulsar does not say when they fall
// due without a consumer.
func active(r backlog.Reading, atLeast int64) (bool, error) {
	ready, err := r.Ready.Value()
	if err != nil {
		return false, newFault(errUnknown, "backlog: %s", err)
	}
	if delayed, err := r.Delayed.Value(); err == nil { // unknown ones count as ready
		ready += delayed
	}
	if ready > float64(atLeast) {
		return true, nil
	}
	if unacked, err := r.Unacked.Value(); err == nil && unacked > 0 { // Exclusive and Failover do not count them
		return true, nil
	}
	delivered, err := r.DeliveryRate.Value()
	if err == nil {
		return delivered > 0, nil
	}
	if consumers, noConsumers := r.Consumers.Value(); noConsumers == nil && consumers == 0 {
		return false, nil // without a consumer nothing is delivered
	}
	return false, newFault(errUnknown, "whether messages are delivered: %s", err)
}

const percent = 100

// busy is how many percent all consumers are busy together.
func busy(f facts) backlog.Measurement {
	const fix = "use strategy BacklogPerReplica or RatePerReplica"
	consumers, err := f.reading.Consumers.Value()
	if err != nil {
		return backlog.Unknown(err)
	}
	share, err := f.reading.Instances.Busy.Value()
	switch {
	case consumers == 0 && f.noReplicas != nil:
		return backlog.Unknown(f.noReplicas)
	case consumers == 0 && f.replicas == 0:
		return backlog.Known(0) // without a replica none is busy
	case consumers == 0:
		return backlog.Unknown(newFault(errUnknown, "none of %d replicas consumes", f.replicas))
	case f.reading.Instances.Asynchronous:
		return backlog.Unknown(newFault(errUnknown,
			"the function is asynchronous, so its instances do not measure how busy they are: %s", fix))
	case errors.Is(err, backlog.ErrNotAsked):
		return backlog.Unknown(newFault(errUnknown,
			"instances are not asked how busy they are: start the scaler with --instance-metrics, or %s", fix))
	case err != nil:
		return backlog.Unknown(newFault(errUnknown, "how busy instances are is not known (%s): if it stays so, %s", err, fix))
	}
	if f.noReplicas == nil && f.replicas > 0 {
		consumers = min(consumers, float64(f.replicas)) // others on the subscription are not KEDA's to scale
	}
	return backlog.Known(percent * min(1, share) * consumers)
}
