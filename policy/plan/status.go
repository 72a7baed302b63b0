// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Status is the status to write. Unknown values keep their last one, and conditions say whether desiredReplicas is
// still served. Without a target there is no decision to serve, but the learned capacity stays. The checkpoint is
// renewed if StatusDiffers says that the rest is worth a write.
func Status(observed Observed, decision *policy.Decision, state policy.State,
	result Result,
) v1alpha1.AutoscalingPolicyStatus {
	o, before := observed.after(result), observed.Policy.Status
	o.decision = decision
	after := *before.DeepCopy()
	after.ObservedGeneration = o.Policy.Generation
	after.Target = Shorten(ShortName(o.Policy.Spec), maxTarget)
	after.SpecReplicas, after.RunningReplicas = nil, running(o.Observed)
	if o.Target != nil {
		after.SpecReplicas = o.Target.Replicas
	}
	after.Actuator, after.HorizontalPodAutoscaler, after.ScaledObject = actuation(o.Observed)
	after.Conditions = o.conditions()
	if o.nothingToDecide() {
		after.DesiredReplicas, after.Signals, after.Decision = nil, nil, nil
	}
	off := SwitchedOff(o.Observed)
	if off { // otherwise an autoscaler would follow it as soon as the user sets replicas
		after.DesiredReplicas = nil
	}
	if decision == nil {
		return after
	}
	after.Decision = decisionStatus(*decision)
	after.Capacity = capacityStatus(state)
	if o.Reading != nil {
		if replicas := decision.Replicas; !off {
			after.DesiredReplicas = &replicas
		}
		after.Signals = signalsStatus(*o.Reading, decision.Wait)
	}
	// Encoding takes ten times as long as deciding, so it happens only for a write.
	if ceilingIn(before.Checkpoint) != state.Plateau.Ceiling || StatusDiffers(before, after, o.Now) {
		after.Checkpoint = checkpoint(state)
	}
	return after
}

// running is how many replicas run; nil if unknown.
func running(o Observed) *int32 {
	switch {
	case o.Target == nil:
		return nil
	case o.Pods != nil && o.Pods.Running != nil:
		return o.Pods.Running
	default:
		return o.Target.Reported
	}
}

// actuation is what writes the replicas, and through which object.
func actuation(o Observed) (actuator *v1alpha1.ActuatorStatus, hpa, scaledObject string) {
	if mode := o.Policy.Spec.Mode; mode == v1alpha1.ModeRecommend || mode == v1alpha1.ModePaused ||
		o.Violation != nil {
		return nil, "", ""
	}
	if o.Autoscaler != nil {
		hpa = o.Autoscaler.Name
	}
	if ours := o.ownScaledObject(); ours != nil {
		scaledObject = ours.Name
	}
	return &v1alpha1.ActuatorStatus{Type: o.Actuator.Type, Reason: Shorten(o.Actuator.Reason, maxText)}, hpa, scaledObject
}

// nothingToDecide says that the mode is Paused, or that no target can be scaled.
func (o Observed) nothingToDecide() bool {
	return o.Policy.Spec.Mode == v1alpha1.ModePaused ||
		(o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound)
}

func decisionStatus(d policy.Decision) *v1alpha1.Decision {
	status := &v1alpha1.Decision{
		Time: metav1.NewTime(d.Time.Truncate(time.Second)), Strategy: d.Strategy, Equation: Shorten(d.Equation,
			maxText), CappedBy: d.CappedBy,
	}
	if d.Hold != nil {
		status.Hold = &v1alpha1.Hold{Reason: d.Hold.Reason, Message: Shorten(d.Hold.Message, maxText)}
	}
	return status
}

func signalsStatus(r backlog.Reading, wait backlog.Measurement) *v1alpha1.Signals {
	signals := &v1alpha1.Signals{MeasuredAt: metav1.NewTime(r.At.Truncate(time.Second))}
	if ready, err := r.Ready.Value(); err == nil {
		messages := int64(min(math.Round(ready), math.MaxInt64/2))
		signals.ReadyMessages = &messages
	}
	if rate, err := r.PublishRate.Value(); err == nil {
		rounded := v1alpha1.NewRate(rate)
		signals.PublishRate = &rounded
	}
	if rate, err := r.ProcessRate.Value(); err == nil {
		rounded := v1alpha1.NewRate(rate)
		signals.ProcessRate = &rounded
	}
	if consumers, err := r.Consumers.Value(); err == nil {
		count := int32(min(consumers, math.MaxInt32))
		signals.Consumers = &count
	}
	if seconds, err := wait.Value(); err == nil {
		const longest = 365 * 24 * time.Hour
		signals.Wait = &metav1.Duration{Duration: min(longest, roundedWait(seconds))}
	}
	return signals
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

// Intervals at which a status is written without a new decision.
const (
	// refreshEvery bounds how often changed signals are written: at 10k policies, all with a changing backlog, 333 times a
	// second.
	refreshEvery = 30 * time.Second
	// heartbeat is the maximum age of a status.
	heartbeat = 5 * time.Minute
)

// StatusDiffers says whether the new status is worth a write: if the decision, a hold, a bound, a condition or the
// ceiling changed, which takes minutes to learn; every refreshEvery if signals or the capacity changed by more than a
// tenth; and once a heartbeat.
func StatusDiffers(before, after v1alpha1.AutoscalingPolicyStatus, now time.Time) bool {
	if !equality.Semantic.DeepEqual(alwaysWritten(before), alwaysWritten(after)) ||
		ceilingIn(before.Checkpoint) != ceilingIn(after.Checkpoint) {
		return true
	}
	if after.Decision == nil {
		return false
	}
	if before.Decision == nil {
		return true
	}
	switch age := now.Sub(before.Decision.Time.Time); {
	case age >= heartbeat:
		return true
	case age >= refreshEvery:
		return signalsMoved(before, after)
	default:
		return false
	}
}

// ceilingIn a checkpoint; 0 for none.
func ceilingIn(checkpoint string) int32 {
	var known struct {
		Plateau struct {
			Ceiling int32 `json:"ceiling"`
		} `json:"plateau"`
	}
	if !strings.Contains(checkpoint, `"ceiling"`) || json.Unmarshal([]byte(checkpoint), &known) != nil {
		return 0
	}
	return known.Plateau.Ceiling
}

// alwaysWritten is the part of a status that is written at every change.
func alwaysWritten(s v1alpha1.AutoscalingPolicyStatus) v1alpha1.AutoscalingPolicyStatus {
	d := *s.DeepCopy()
	d.Signals, d.Capacity, d.Checkpoint = nil, nil, ""
	if d.RunningReplicas != nil && (d.SpecReplicas == nil || *d.RunningReplicas != *d.SpecReplicas) {
		d.RunningReplicas = nil // while replicas start one by one, the last start counts
	}
	if d.Decision != nil {
		d.Decision.Time, d.Decision.Equation = metav1.Time{}, ""
		if d.Decision.Hold != nil {
			d.Decision.Hold.Message = ""
		}
	}
	return d
}

// signalsMoved says whether the visible numbers changed by more than a tenth.
func signalsMoved(before, after v1alpha1.AutoscalingPolicyStatus) bool {
	if !equality.Semantic.DeepEqual(before.RunningReplicas, after.RunningReplicas) {
		return true
	}
	if (before.Signals == nil) != (after.Signals == nil) || (before.Capacity == nil) != (after.Capacity == nil) {
		return true
	}
	if before.Capacity != nil &&
		differsByTenth(before.Capacity.MessagesPerSecond.AsApproximateFloat64(),
			after.Capacity.MessagesPerSecond.AsApproximateFloat64()) {
		return true
	}
	if before.Signals == nil {
		return false
	}
	b, a := before.Signals, after.Signals
	if (b.ReadyMessages == nil) != (a.ReadyMessages == nil) || (b.PublishRate == nil) != (a.PublishRate == nil) {
		return true
	}
	if b.ReadyMessages != nil && differsByTenth(float64(*b.ReadyMessages), float64(*a.ReadyMessages)) {
		return true
	}
	return b.PublishRate != nil &&
		differsByTenth(b.PublishRate.AsApproximateFloat64(), a.PublishRate.AsApproximateFloat64())
}

// differsByTenth says that numbers differ by a tenth of the larger and more than 1.
func differsByTenth(a, b float64) bool {
	gap := math.Abs(a - b)
	return gap > 1 && gap > max(a, b)/10
}

// The maximum bytes of status.target, and of the other texts of a status except messages of conditions.
const (
	maxTarget = 512
	maxText   = 1024
)

// Shorten cuts a text to so many bytes, as the API counts, without splitting a character.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}

// checkpoint is the encoded state; empty if it cannot be encoded, and then Resume has the capacity alone.
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
		covered := int32(max(1, 100*s.Capacity.Coverage+0.5))
		status.MeasuredBusyPercent = &covered
	}
	return status
}
