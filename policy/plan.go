// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	acautoscalingv2 "k8s.io/client-go/applyconfigurations/autoscaling/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Abilities are what a cluster can do, as it was probed. The zero value is a cluster of which nothing is known yet.
type Abilities struct {
	// MetricsAPIHolder is who serves custom.metrics.k8s.io instead of us, such as "Service monitoring/prometheus-adapter"; empty
	// when we do, or when that is not known.
	MetricsAPIHolder string
	// NoMetricsAPI says that nobody serves it.
	NoMetricsAPI bool
	// ScaleToZero says that a HorizontalPodAutoscaler takes minReplicas 0 (feature gate HPAScaleToZero).
	ScaleToZero bool
	// KEDA says that its kinds are installed.
	KEDA bool
}

// Choose says who writes the number of replicas, and why. A named actuator is taken at its word.
func (a Abilities) Choose(wanted v1alpha1.Actuator, scaling Scaling) v1alpha1.ActuatorStatus {
	switch {
	case wanted == v1alpha1.ActuatorHPA:
		return v1alpha1.ActuatorStatus{Type: wanted, Reason: "spec.actuator says so" + a.butMetrics()}
	case wanted == v1alpha1.ActuatorDirect:
		return v1alpha1.ActuatorStatus{Type: wanted, Reason: "spec.actuator says so"}
	case a.MetricsAPIHolder != "":
		return v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: "custom.metrics.k8s.io is served by " + a.MetricsAPIHolder +
			", so no HorizontalPodAutoscaler can ask the adapter" + a.andKEDA()}
	case a.NoMetricsAPI:
		return v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: "nobody serves custom.metrics.k8s.io, so no HorizontalPodAutoscaler " +
			"can ask the adapter: apply its APIService"}
	case scaling == ByWorker:
		return v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorDirect, Reason: "the function worker has no pods for a HorizontalPodAutoscaler to look after"}
	default:
		return v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorHPA, Reason: "custom.metrics.k8s.io is served by the adapter"}
	}
}

// andKEDA says that the way around by KEDA is not taken, where somebody may wonder.
func (a Abilities) andKEDA() string {
	if a.KEDA {
		return "; KEDA is installed, but the adapter does not work through it"
	}
	return ""
}

// butMetrics warns of a choice that cannot work.
func (a Abilities) butMetrics() string {
	switch {
	case a.MetricsAPIHolder != "":
		return ", although custom.metrics.k8s.io is served by " + a.MetricsAPIHolder + " and not by the adapter: use Direct"
	case a.NoMetricsAPI:
		return ", although nobody serves custom.metrics.k8s.io: apply the adapter's APIService, or use Direct"
	default:
		return ""
	}
}

// Plan is what is to be written for a policy. Nil fields are left alone.
type Plan struct {
	// Autoscaler to apply.
	Autoscaler *acautoscalingv2.HorizontalPodAutoscalerApplyConfiguration
	// RemoveAutoscaler deletes ours.
	RemoveAutoscaler bool
	// Replicas to write to the target.
	Replicas *int32
	// OwnReplicas to write to spec.replicas of the policy, which its autoscaler scales in place of the target.
	OwnReplicas *int32
	// StatusFirst says that the status is to be written before Replicas. An autoscaler does nothing at zero and goes on the moment
	// there are replicas: it would take them down to what the metric said before.
	StatusFirst bool
}

// NewPlan says what to write. While there is a violation nothing is touched, ours included: taking ours away would hand
// the target to a rival, which knows nothing of the backlog. Every violation thus freezes what runs until a person has decided.
// There is one exception: a policy that another goes before gives way, else that one would wait for ever.
//
// Nothing goes to a target that is frozen, nor to one whose replicas were set to 0 by hand while minReplicas is more: as for
// a HorizontalPodAutoscaler, that is how to switch scaling off. Any other number that somebody writes is taken for the present
// one: Decide goes on from it.
func NewPlan(o Outcome, decision *Decision) Plan {
	p := o.World.Policy
	if p.Spec.Mode == v1alpha1.ModeRecommend || p.Spec.Mode == v1alpha1.ModeOff {
		return Plan{RemoveAutoscaler: true}
	}
	if v := o.Violation; v != nil || o.World.Target == nil || o.World.Target.Replicas == nil {
		return Plan{RemoveAutoscaler: v != nil && v.Reason == ReasonOlderPolicy}
	}
	current := *o.World.Target.Replicas
	decided := current
	if decision != nil {
		decided = decision.Replicas // which is the present number while the backlog is unknown: see keep
	}
	off := SwitchedOff(o.World) || o.World.Target.Frozen != nil
	if o.Actuator.Type == v1alpha1.ActuatorDirect {
		return Plan{RemoveAutoscaler: true, Replicas: differing(decided, current, off)}
	}
	var plan Plan
	if o.World.Target.mayHaveAutoscaler(p.Spec) {
		plan.Autoscaler = HorizontalPodAutoscaler(p, o.World.Target, o.World.Abilities)
	} else {
		plan.RemoveAutoscaler = true
	}
	switch {
	case o.World.Target.Scaling != BySubresource:
		plan = plan.handedOn(o, current, decided, off)
	case o.throughZero(decided, current):
		plan.Replicas = differing(decided, current, off)
	}
	plan.StatusFirst = plan.Replicas != nil && current == 0
	return plan
}

// throughZero says that the way goes where our autoscaler does not: one that reaches zero does nothing while the backlog is
// unknown, for it gets no metric then.
func (o Outcome) throughZero(decided, current int32) bool {
	return (decided == 0 || current == 0) && (o.Unknown != nil || !o.autoscalerReachesZero())
}

// mayHaveAutoscaler is false for what is frozen out of bounds: an autoscaler would bring it back into them at once, and one that
// is there does so as soon as the bounds change, for they bound the metric.
func (t *Target) mayHaveAutoscaler(spec v1alpha1.AutoscalingPolicySpec) bool {
	return t.Frozen == nil || (*t.Replicas >= LeastReplicas(spec) && *t.Replicas <= spec.MaxReplicas)
}

// differing is the number to write, nil for none.
func differing(decided, current int32, off bool) *int32 {
	if off || decided == current {
		return nil
	}
	return &decided
}

// handedOn plans for a target whose autoscaler scales the policy: the number it writes there is handed on. Until there is an
// autoscaler the policy holds what runs, so that neither jumps when scaling begins or is resumed; and it takes over what somebody
// else wrote to the target.
func (plan Plan) handedOn(o Outcome, current, decided int32, off bool) Plan {
	held := o.World.Policy.Spec.Replicas
	switch {
	case held == nil || o.World.Autoscaler == nil || off || movedByOthers(o.World, *held, current):
		if held == nil || *held != current {
			plan.OwnReplicas = &current
		}
	case decided != current && o.throughZero(decided, current):
		plan.OwnReplicas, plan.Replicas = &decided, &decided
	case *held != current:
		plan.Replicas = held
	}
	return plan
}

// movedByOthers says that the target has left the number that the policy holds, which is what it had when it was last seen.
func movedByOthers(w World, held, current int32) bool {
	seen := w.Policy.Status.CurrentReplicas
	return seen == nil || (held == *seen && current != *seen)
}

// autoscalerReachesZero says that ours goes to zero and back by itself. One that has not gone there itself does nothing at
// zero (ScalingDisabled).
func (o Outcome) autoscalerReachesZero() bool {
	live := o.World.Autoscaler
	if !o.World.Abilities.ScaleToZero || live == nil {
		return false
	}
	for _, c := range live.Status.Conditions {
		if c.Type == autoscalingv2.ScalingActive && c.Status == corev1.ConditionFalse && c.Reason == reasonScalingDisabled {
			return false
		}
	}
	return true
}

// reasonScalingDisabled is what a HorizontalPodAutoscaler says of a target at zero that it did not take there.
const reasonScalingDisabled = "ScalingDisabled"

// SwitchedOff says that somebody set the target's replicas to 0 although the policy wants some. One that was at zero because there
// was nothing to do, and whose minReplicas was raised since, is not switched off: the condition of the last pass tells.
func SwitchedOff(w World) bool {
	if w.Target == nil || w.Target.Replicas == nil || *w.Target.Replicas != 0 || (LeastReplicas(w.Policy.Spec) == 0 && !w.Target.NeverZero) {
		return false
	}
	last := meta.FindStatusCondition(w.Policy.Status.Conditions, v1alpha1.ConditionScalingActive)
	return last == nil || last.Reason != ReasonAtZero
}

// Frozen is why the replicas have to stay as they are whatever the backlog; nil when they may change.
func Frozen(w World) *Hold {
	switch {
	case w.Target == nil:
		return nil
	case w.Target.Frozen == nil && SwitchedOff(w):
		return &Hold{Reason: HoldSwitchedOff, Message: switchedOff(w)}
	default:
		return w.Target.Frozen
	}
}

func switchedOff(w World) string {
	return fmt.Sprintf("replicas of %s are 0 although minReplicas is %d, which switches scaling off: set them to 1 or more, or minReplicas to 0",
		Name(w.Policy.Spec), max(1, LeastReplicas(w.Policy.Spec)))
}
