// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Status is the status to write. Unknown values keep their last value, and conditions report whether desiredReplicas is
// still served. Without a target there is no decision to serve, but the learned capacity stays. While the policy is
// paused, the decision keeps the replicas and is not shown. The checkpoint is renewed if Due is true for the rest. The
// history is that after the decision, see History.Decided.
func Status(observed plan.Observed, h History, decision *policy.Decision, state policy.State,
	result plan.Result,
) v1alpha1.AutoscalingPolicyStatus {
	o, before := newOutcome(observed, result), observed.Policy.Status
	o.findings, o.decision, o.state = h.findings, decision, state
	after := before // what both share is replaced below and never changed
	after.ObservedGeneration = o.Policy.Generation
	after.Target = plan.Shorten(plan.ShortName(o.Policy.Spec), maxTarget)
	after.Limits = o.Limits
	after.SpecReplicas, after.RunningReplicas = nil, running(o.Target, o.Pods)
	if o.Target != nil {
		after.SpecReplicas = o.Target.Replicas
	}
	after.Actuator, after.HorizontalPodAutoscaler, after.ScaledObject = actuation(o.Observed)
	o.lastStart = cmp.Or(replicaStart(o.Observed), before.Start)
	after.Conditions = o.conditions()
	paused := o.Paused() != ""
	if o.NothingToDecide() {
		after.DesiredReplicas, after.Signals, after.Decision, after.Forecast = nil, nil, nil, nil
		after.Attainment = nil
	}
	off := paused || o.SwitchedOff() != nil
	if off { // otherwise an autoscaler would follow it as soon as the user sets replicas
		after.DesiredReplicas = nil
	}
	if decision == nil {
		return after
	}
	if after.Decision = decisionStatus(*decision); paused {
		after.Decision = nil
	}
	if last := h.findings.scaleDown.status(); last != nil {
		after.LastScaleDown = last
	}
	after.Capacity, after.Start = capacityStatus(state), nil
	if meta.IsStatusConditionFalse(after.Conditions, v1alpha1.ConditionObjectiveAchievable) {
		after.Start = o.lastStart
	}
	if o.Reading != nil {
		if replicas := decision.Replicas; !off {
			after.DesiredReplicas = &replicas
		}
		after.Signals, after.Forecast = signalsStatus(*o.Reading, *decision), forecastStatus(decision.Next)
		after.Attainment = attainment(*decision, o.Policy.Spec)
		in := plan.Input(o.Observed)
		in.Reading.Type = cmp.Or(state.Type.Is, in.Reading.Type) // that of the decision
		if most, limited := policy.UsefulReplicas(in); limited {
			after.Signals.UsefulReplicas = &most
		}
	} else if state.ReadAt.IsZero() { // those before may be of another subscription
		after.Signals, after.Forecast, after.Attainment = nil, nil, nil
	}
	// Encoding takes ten times as long as deciding, so it happens only for a write.
	if policy.CeilingIn(before.WorkingCheckpoint) != state.Plateau.Ceiling() || Due(o.Observed, h, after) {
		after.WorkingCheckpoint = checkpoint(state)
	}
	return after
}

// Failed is the status after a reconcile that could not observe the input of a decision. The last decision stays, with
// its time: other processes serve it until it is too old.
func Failed(o plan.Observed, why error) v1alpha1.AutoscalingPolicyStatus {
	after := *o.Policy.Status.DeepCopy()
	meta.SetStatusCondition(&after.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonReconcileFailed,
		ObservedGeneration: o.Policy.Generation, LastTransitionTime: metav1.NewTime(o.Now),
		Message: plan.Shorten("retrying after an error: "+why.Error(), maxText),
	})
	return after
}

// running is the number of replicas that run; nil if unknown.
func running(target *plan.Target, pods *policy.Pods) *int32 {
	switch {
	case target == nil:
		return nil
	case pods != nil && pods.Running != nil:
		return pods.Running
	default:
		return target.Reported
	}
}

// actuation is what writes the replicas, and through which object.
func actuation(o plan.Observed) (actuator *v1alpha1.ActuatorStatus, hpa, scaledObject string) {
	if !o.Applies() || o.Violation != nil {
		return nil, "", ""
	}
	if o.Autoscaler != nil {
		hpa = o.Autoscaler.Name
	}
	if ours := o.OwnScaledObject(o.Policy); ours != nil {
		scaledObject = ours.Name
	}
	chosen := o.Actuator
	chosen.Reason = plan.Shorten(chosen.Reason, maxText)
	return &chosen, hpa, scaledObject
}

func decisionStatus(d policy.Decision) *v1alpha1.Decision {
	status := &v1alpha1.Decision{
		Time: metav1.NewTime(d.Time.Truncate(time.Second)), Strategy: d.Strategy, Equation: plan.Shorten(d.Equation,
			maxText), CappedBy: d.CappedBy, PassedGuards: d.PassedGuards,
	}
	if d.Hold != nil {
		status.Hold = &v1alpha1.Hold{Reason: d.Hold.Reason, Message: plan.Shorten(d.Hold.Message, maxText)}
	}
	return status
}

func signalsStatus(r backlog.Reading, d policy.Decision) *v1alpha1.Signals {
	signals := &v1alpha1.Signals{
		MeasuredAt: metav1.NewTime(r.At.Truncate(time.Second)), Coverage: coverageStatus(r.Coverage),
		PublishRate: rateStatus(r.PublishRate), ProcessRate: rateStatus(r.ProcessRate),
	}
	if ready, some := shown(r.Ready); some {
		signals.ReadyMessages = new(int64(min(math.Round(ready), math.MaxInt64/2)))
	}
	if d.Discounted >= 1 {
		signals.DiscountedMessages = new(int64(min(d.Discounted, math.MaxInt64/2)))
	}
	if consumers, some := shown(r.Consumers); some {
		signals.Consumers = new(int32(min(consumers, math.MaxInt32)))
	}
	if seconds, some := shown(d.Wait); some {
		const longest = 365 * 24 * time.Hour
		signals.Wait = &metav1.Duration{Duration: min(longest, roundedWait(seconds))}
	}
	return signals
}

// forecastStatus is the load that is expected next; nil if none is.
func forecastStatus(next *forecast.Next) *v1alpha1.ExpectedLoad {
	if next == nil {
		return nil
	}
	return &v1alpha1.ExpectedLoad{
		Time:        metav1.NewTime(next.Begin.Truncate(time.Second)),
		Within:      metav1.Duration{Duration: next.Spread.Round(time.Second)},
		PublishRate: v1alpha1.NewRate(next.PerSecond),
		Foreseen:    next.Foreseen, Of: next.Of,
	}
}

// attainment is how many messages met the objective; nil if that is unknown, and if all have to.
func attainment(d policy.Decision, spec v1alpha1.AutoscalingPolicySpec) *v1alpha1.Attainment {
	late, err := d.Late.Value()
	burn, unknown := d.BurnRate(spec).Value()
	if err != nil || unknown != nil {
		return nil
	}
	const inexact = 1e-9 // of a binary fraction: 1-0.34 is a little less than 0.66
	percent := func(part float64) int32 { return int32(100*max(0, part) + inexact) }
	return &v1alpha1.Attainment{Percent: percent(1 - late), BudgetLeftPercent: percent(1 - burn)}
}

// coverageStatus is the missing part of a reading; nil for none.
func coverageStatus(c backlog.Coverage) *v1alpha1.Coverage {
	if c.Complete() {
		return nil
	}
	count := func(n int) int32 { return int32(min(max(0, n), math.MaxInt32)) }
	status := &v1alpha1.Coverage{Topics: count(c.Topics), KnownTopics: count(c.Known)}
	for _, one := range c.Missing {
		name := plan.Shorten(one.Name, maxTarget)
		if slices.ContainsFunc(status.Missing, func(m v1alpha1.MissingTopic) bool { return m.Name == name }) {
			continue
		}
		status.Missing = append(status.Missing, v1alpha1.MissingTopic{
			Name: name, Message: plan.Shorten(backlog.Quote(one.Reason.Error()), maxText),
		})
	}
	return status
}

// shown is a number or its lower bound, unless the bound is no information.
func shown(m backlog.Measurement) (value float64, some bool) {
	least, err := m.LowerBound()
	return least, err == nil && (m.Known() || least > 0)
}

// rateStatus is a rate as users see it; nil if it is unknown.
func rateStatus(m backlog.Measurement) *v1alpha1.Rate {
	rate, some := shown(m)
	if !some {
		return nil
	}
	return new(v1alpha1.NewRate(rate))
}

// roundedWait is a wait in significant digits: tenths of a second, and whole seconds from 10 s on.
func roundedWait(seconds float64) time.Duration {
	const most = 1e9 // does not overflow
	wait := time.Duration(min(seconds, most)*10) * (time.Second / 10)
	if wait < 10*time.Second {
		return wait
	}
	return wait.Round(time.Second)
}

// The maximum bytes of status.target, and of the other texts of a status except messages of conditions.
const (
	maxTarget = 512
	maxText   = 1024
)

// checkpoint is the encoded state; empty if it cannot be encoded.
func checkpoint(s policy.State) string {
	text, err := s.Encode()
	if err != nil {
		return ""
	}
	return text
}

// capacityStatus is the capacity as users see it.
func capacityStatus(s policy.State) *v1alpha1.Capacity {
	if s.Capacity == nil {
		return nil
	}
	status := &v1alpha1.Capacity{
		MessagesPerSecond:  v1alpha1.NewRate(s.Capacity.MessagesPerSecond),
		UncertaintyPercent: s.Capacity.UncertaintyPercent(),
		Observations:       s.Capacity.Observations,
		LearnedAt:          metav1.NewTime(s.Capacity.LearnedAt.Truncate(time.Second)),
	}
	if s.Capacity.Coverage > 0 {
		status.MeasuredBusyPercent = new(int32(max(1, 100*s.Capacity.Coverage+0.5)))
	}
	return status
}
