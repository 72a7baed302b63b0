// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// evaluator evaluates triggers from the cache. It is safe for concurrent use.
type evaluator struct {
	config Config
	last   *lastSamples
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
		if spec, unknown := e.spec(t, now); unknown == nil {
			result.sample.Spec = spec // which a GetMetricSpec says too, if the policy's threshold changed meanwhile
		}
		replicas, noReplicas := e.config.ScaledObjects.Replicas(t.Object)
		result.sample, result.err = result.sample.atLeast(replicas, noReplicas, err)
	}
	return result
}

// running is a sample with the running replicas, for a trigger without a response of Pulsar yet: KEDA may scale to zero
// on an error. It is inactive if none run, or for a mistake of the user.
func (e *evaluator) running(t Trigger, why error, now time.Time) Sample {
	if t.followsPolicy() || response.IsMisconfigured(why) {
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

func (e *evaluator) observe(t Trigger, now time.Time) observed {
	o := observed{now: now}
	if t.Subject.Policy != "" {
		if o.policy, o.noPolicy = e.policy(t); o.noPolicy != nil {
			return o
		}
	}
	switch {
	case t.followsPolicy():
		o.oldSince, o.old = e.old(o.policy, now)
		o.desired, o.noDesired = served.LastDesired(o.policy)
		if o.old != nil || o.desired.Held != "" || served.Paused(o.policy) || served.BeingWoken(o.policy, now) {
			o.replicas, o.noReplicas = e.config.ScaledObjects.Replicas(t.Object)
		}
	default:
		o.reading, o.noReading = e.config.Signals.Read(t.Subject, now)
		if t.Strategy == v1alpha1.StrategyUtilization || lost(o) || !o.reading.Coverage.Complete() { // expensive
			o.replicas, o.noReplicas = e.config.ScaledObjects.Replicas(t.Object)
		}
	}
	return o
}

func (e *evaluator) policy(t Trigger) (*v1alpha1.AutoscalingPolicy, error) {
	return e.config.Policies.Policy(types.NamespacedName{Namespace: t.Subject.Namespace, Name: t.Subject.Policy})
}

// old returns since when the policy's decision is too old to follow, zero if that is unknown, and why; nil if it is
// current.
func (e *evaluator) old(p *v1alpha1.AutoscalingPolicy, now time.Time) (since time.Time, why error) {
	why = e.config.DecisionMaker.Current(p, now)
	var dated interface{ Since() time.Time }
	if errors.As(why, &dated) {
		since = dated.Since()
	}
	return since, why
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

func (e *evaluator) report(t Trigger, result resolved, now time.Time) {
	log := e.config.Logger.With("scaledObject", t.Object.String(), "subject", t.Subject.describe(), "metric", metricOf(t))
	switch result.state {
	case held:
		log.Warn("trigger is unknown at least in part, holding replicas", "since",
			result.since.UTC().Format(time.RFC3339), "reason", result.why)
	case misconfigured:
		log.Error("trigger names a missing object, responding with an error", "reason", result.why)
	case expired:
		log.Error("trigger was unknown for too long, responding with an error",
			"unknownFor", now.Sub(result.since).Truncate(time.Second).String(), "reason", result.why)
	default:
		log.Info("trigger is known again")
	}
}

// Sample is the value of a trigger at one time.
type Sample struct {
	Spec Spec
	// Value in the unit of the spec's target, from 0 to 9e12, for all replicas together.
	Value float64
	// Active reports whether there is work, which needs at least one replica.
	Active bool
	// HeldSince is since when it has been unknown; zero if it is known, or if that time is unknown.
	HeldSince time.Time
	// Held is why, as a text for the user; empty if it is known.
	Held string
}

// observed has the inputs of a trigger, and no others.
type observed struct {
	now time.Time
	// policy, or why there is none.
	policy   *v1alpha1.AutoscalingPolicy
	noPolicy error
	// desired replicas of a policy that is followed, or why there is no decision.
	desired   served.Number
	noDesired error
	// old is why the decision of the policy is too old to follow, since oldSince if known; nil if it is current.
	old      error
	oldSince time.Time
	// reading of the subject, or why there is none.
	reading   backlog.Reading
	noReading error
	// replicas of the ScaledObject, or why they are unknown.
	replicas   int32
	noReplicas error
}

// newSample evaluates a trigger, or returns why it is unknown.
func newSample(t Trigger, o observed) (Sample, error) {
	if o.noPolicy != nil {
		return Sample{}, unread(t.Subject, o.noPolicy)
	}
	spec, err := specOf(t, o.policy)
	if err != nil {
		return Sample{}, err
	}
	evaluated := Sample{Spec: spec}
	switch {
	case t.followsPolicy():
		err = evaluated.follow(o)
	default:
		err = evaluated.measure(t, o)
	}
	if err != nil {
		return Sample{}, err
	}
	if evaluated.Value, err = response.Number(evaluated.Value); err != nil {
		return Sample{}, err
	}
	return evaluated, nil
}

// atLeast returns the last sample while it is held, raised to the current replicas: it was right for one moment, and
// KEDA's cooldown and the stabilization window of its HorizontalPodAutoscaler cover minutes. With unknown replicas it
// is never inactive: KEDA would scale to zero.
func (s Sample) atLeast(current int32, noReplicas, why error) (Sample, error) {
	switch {
	case noReplicas == nil:
		s.Active = s.Active || current > 0
		s.Value = min(max(s.Value, float64(current)*s.Spec.Target), response.Largest)
	case !s.Active:
		return Sample{}, response.Errorf(response.Unknown, "%s; the replicas to keep are unknown too: %s", why,
			noReplicas)
	}
	return s, nil
}

// follow uses the decision of the policy, which its status keeps while the backlog is unknown: replicas that run then
// stay. While the policy is paused, they stay too.
func (s *Sample) follow(o observed) error {
	desired, err := o.desired, o.noDesired
	if err != nil && served.Paused(o.policy) && o.noReplicas == nil { // on an error KEDA may scale to zero
		s.Value, s.Active = float64(o.replicas), o.replicas > 0
		return nil
	}
	if err != nil {
		return response.Errorf(response.Unknown, "%s", err)
	}
	s.Value = float64(desired.Replicas)
	s.Active = desired.Replicas > 0 && (o.replicas > 0 || !served.BeingWoken(o.policy, o.now))
	s.HeldSince, s.Held = desired.HeldSince, desired.Held
	if o.old != nil && (s.Held == "" || !o.oldSince.IsZero() && o.oldSince.Before(s.HeldSince)) {
		s.HeldSince, s.Held = o.oldSince, o.old.Error()
	}
	if s.Held != "" {
		*s, err = s.atLeast(o.replicas, o.noReplicas, errors.New(s.Held))
	}
	return err
}

func (s *Sample) measure(t Trigger, o observed) error {
	if mayStart(t, o) && o.noReplicas == nil && o.replicas == 0 {
		// Messages published before a replica recreates the subscription would be lost, so one replica is requested. One
		// replica starts with the known topics; the others may need more.
		s.Value, s.Active = s.Spec.Target, true
		return nil
	}
	if o.noReading != nil {
		return unread(t.Subject, o.noReading)
	}
	var value backlog.Measurement
	switch t.Strategy {
	case v1alpha1.StrategyBacklogPerReplica:
		value = o.reading.Ready
	case v1alpha1.StrategyRatePerReplica:
		value = o.reading.PublishRate
	default:
		value = busy(o)
	}
	least, err := value.LowerBound()
	if err == nil && !o.reading.Coverage.Complete() && o.noReplicas == nil && o.replicas > 0 {
		// The known topics may add replicas, and the missing ones keep those that run, however long.
		s.Value, s.HeldSince, s.Held = least, o.now, o.reading.Coverage.Err().Error()
		*s, err = s.atLeast(o.replicas, nil, nil)
		return err
	}
	if s.Active, err = active(o.reading, t.ActivationMessages); err != nil {
		return err
	}
	if s.Value, err = value.Value(); err != nil {
		return response.Errorf(response.Unknown, "%s of %s: %s", s.Spec.Metric, t.Subject.describe(), err)
	}
	return nil
}

// mayStart reports whether a part of what there is to read is enough to start the first replica.
func mayStart(t Trigger, o observed) bool {
	return lost(o) || readyInPart(o.reading, t.ActivationMessages)
}

// lost reports whether the subscription does not exist on a topic, by a fresh response of Pulsar.
func lost(o observed) bool {
	return errors.Is(o.noReading, backlog.ErrSubscriptionNotFound) && !errors.Is(o.noReading, backlog.ErrStale) ||
		o.reading.Coverage.Lacks(backlog.ErrSubscriptionNotFound)
}

// readyInPart reports whether enough messages are ready on the known topics while others are unknown.
func readyInPart(r backlog.Reading, atLeast int64) bool {
	ready, err := r.Ready.LowerBound()
	return err == nil && ready > float64(atLeast) && !r.Coverage.Complete()
}

// active reports whether there is work: enough messages are ready, or some are being processed. Replicas that keep up
// may have no backlog at a poll. Delayed messages keep a trigger active: without a consumer Pulsar does not report when
// they become ready.
func active(r backlog.Reading, atLeast int64) (bool, error) {
	ready, err := r.Ready.Value()
	if err != nil {
		return false, response.Errorf(response.Unknown, "backlog: %s", err)
	}
	if delayed, err := r.Delayed.Value(); err == nil { // unknown ones count as ready
		ready += delayed
	}
	if ready > float64(atLeast) {
		return true, nil
	}
	if unacked, err := r.Unacked.Value(); err == nil && unacked > 0 { // unknown with Exclusive and Failover
		return true, nil
	}
	delivered, err := r.DeliveryRate.Value()
	if err == nil {
		return delivered > 0, nil
	}
	if consumers, noConsumers := r.Consumers.Value(); noConsumers == nil && consumers == 0 {
		return false, nil // without a consumer nothing is delivered
	}
	return false, response.Errorf(response.Unknown, "whether messages are delivered: %s", err)
}

const percent = 100

// busy returns the sum of how busy all consumers are, in percent; those on the known topics if some are missing.
func busy(o observed) backlog.Measurement {
	const fix = "use strategy BacklogPerReplica or RatePerReplica"
	consumers, err := o.reading.Consumers.LowerBound()
	if err != nil {
		return backlog.Unknown(err)
	}
	share, err := o.reading.Instances.Busy.Value()
	switch {
	case consumers == 0 && o.noReplicas != nil:
		return backlog.Unknown(o.noReplicas)
	case consumers == 0 && o.replicas == 0:
		return backlog.Known(0) // without a replica none is busy
	case consumers == 0:
		return backlog.Unknown(response.Errorf(response.Unknown, "none of %d replicas consumes", o.replicas))
	case o.reading.Instances.Asynchronous:
		return backlog.Unknown(response.Errorf(response.Unknown,
			"the function is asynchronous, so its instances do not measure how busy they are: %s", fix))
	case errors.Is(err, backlog.ErrNotRequested):
		return backlog.Unknown(response.Errorf(response.Unknown,
			"instances are not scraped: start the scaler with --instance-metrics=Pods (value rbac.pods of the chart), or %s",
			fix))
	case err != nil:
		return backlog.Unknown(response.Errorf(response.Unknown,
			"the busy time of instances is unknown (%s): if that persists, %s", err, fix))
	}
	if o.noReplicas == nil && o.replicas > 0 {
		consumers = min(consumers, float64(o.replicas)) // KEDA does not scale other consumers of the subscription
	}
	return backlog.Known(percent * min(1, share) * consumers)
}
