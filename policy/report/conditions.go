// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// outcome is the observed state and the result of the writes, as conditions report them.
type outcome struct {
	plan.Observed
	// findings of this reconcile and of earlier ones.
	findings findings
	// decision is nil if there is none.
	decision *policy.Decision
	// state after the decision.
	state policy.State
	// lastStart is how the last replicas started; nil if unknown.
	lastStart                *v1alpha1.ReplicaStart
	applyFailed, scaleFailed error
	// restoreFailed is why the restore of other autoscalers failed while no target can be scaled; nil for none.
	restoreFailed *plan.Violation
}

// newOutcome is what was observed, as it is after the writes.
func newOutcome(o plan.Observed, r plan.Result) outcome {
	o.Autoscaler, o.ScaledObject = r.Autoscaler, r.ScaledObject
	after := outcome{Observed: o, applyFailed: r.ApplyFailed, scaleFailed: r.ScaleFailed}
	switch {
	case r.Violation == nil:
	case o.NothingToDecide() && r.Violation.Condition != v1alpha1.ConditionTargetFound:
		after.restoreFailed = r.Violation // the other conditions still have to say that the target is missing
	default:
		after.Violation = r.Violation
	}
	return after
}

// conditions are the updated conditions of the policy.
func (o outcome) conditions() []metav1.Condition {
	after := append([]metav1.Condition(nil), o.Policy.Status.Conditions...)
	set := func(name string, c metav1.Condition) {
		c.Type = name
		SetCondition(&after, c, o.Policy.Generation, o.Now)
	}
	target, known := targetFound(o.Observed), backlogKnown(o.Observed)
	applied, active := withLag(o, o.autoscalerApplied()), scalingActive(o.Observed)
	trouble, limited := o.trouble(target, known, applied, active), o.scalingLimited()
	objective := o.objectiveMet(trouble, limited)
	set(v1alpha1.ConditionReady, o.ready(trouble, active, objective, limited))
	set(v1alpha1.ConditionObjectiveMet, objective)
	set(v1alpha1.ConditionScalingLimited, limited)
	set(v1alpha1.ConditionTargetFound, target)
	set(v1alpha1.ConditionBacklogKnown, known)
	set(v1alpha1.ConditionAutoscalerApplied, applied)
	set(v1alpha1.ConditionSubscriptionVerified, subscriptionVerified(o))
	set(v1alpha1.ConditionScalesWithoutRestart, scalesWithoutRestart(o))
	set(v1alpha1.ConditionObjectiveAchievable, o.objectiveAchievable())
	switch last := meta.FindStatusCondition(after, v1alpha1.ConditionScalingActive); {
	case active != nil:
		set(v1alpha1.ConditionScalingActive, *active)
	case last != nil && last.Reason == v1alpha1.ReasonScaledToZero && isAtZero(o.Target): // no user switched it off
		set(v1alpha1.ConditionScalingActive,
			Unsure(v1alpha1.ReasonScaledToZero, "scaled to zero by the policy, which does not scale it now"))
	default:
		meta.RemoveStatusCondition(&after, v1alpha1.ConditionScalingActive)
	}
	if o.Paused() != "" { // nothing has to be fixed for replicas to stay
		meta.RemoveStatusCondition(&after, v1alpha1.ConditionStalled)
		return after
	}
	return WithStalled(after, o.Policy.Generation, o.Now)
}

func isAtZero(t *plan.Target) bool { return t != nil && t.Replicas != nil && *t.Replicas == 0 }

// SetCondition sets a condition of a policy or a set. The API server refuses a status with a text that is too long, and
// texts of other systems have any length.
func SetCondition(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	c.ObservedGeneration, c.LastTransitionTime = generation, metav1.NewTime(now)
	c.Message = plan.Shorten(c.Message, maxMessage)
	meta.SetStatusCondition(conditions, c)
}

// Yes is a condition that is True; its type is set later.
func Yes(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// No is False.
func No(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unsure is Unknown.
func Unsure(reason, message string) metav1.Condition {
	return metav1.Condition{Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// ofViolation is Unknown for what goes by itself.
func ofViolation(v *plan.Violation) metav1.Condition {
	if v.Reason == v1alpha1.ReasonPending {
		return Unsure(v.Reason, v.Message)
	}
	return No(v.Reason, v.Message)
}

// withoutTarget reports whether the target is not found, so that nothing that follows from it is known.
func withoutTarget(o plan.Observed) bool {
	return o.Target == nil || o.NothingToDecide()
}

func targetFound(o plan.Observed) metav1.Condition {
	if o.NothingToDecide() {
		return No(o.Violation.Reason, o.Violation.Message)
	}
	if missing := childMissing(o); missing != nil {
		return *missing
	}
	return Yes(v1alpha1.ReasonFound, plan.Name(o.Policy.Spec)+" exists and can be scaled")
}

func (o outcome) autoscalerApplied() metav1.Condition {
	const retrying = "retrying after an error: "
	switch {
	case o.restoreFailed != nil:
		return No(o.restoreFailed.Reason, o.restoreFailed.Message)
	case o.NothingToDecide():
		return notChecked()
	case o.Violation != nil:
		return ofViolation(o.Violation)
	case o.applyFailed != nil:
		return Unsure(v1alpha1.ReasonApplyFailed, retrying+o.applyFailed.Error())
	case o.scaleFailed != nil:
		return Unsure(v1alpha1.ReasonScaleFailed, retrying+o.scaleFailed.Error())
	case byKEDA(o.Observed) != nil:
		return *byKEDA(o.Observed)
	case !o.Applies():
		return Yes(o.notApplied())
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		return Yes(v1alpha1.ReasonDirect, "the controller writes the number of replicas itself: "+o.Actuator.Reason)
	case o.Autoscaler == nil && !o.MayHaveAutoscaler():
		return Unsure(v1alpha1.ReasonPending, "the HorizontalPodAutoscaler would bring the replicas within bounds, so it is "+
			"created when they may change: "+o.Target.Frozen.Message)
	case o.Autoscaler == nil && o.Unknown != nil:
		return Unsure(v1alpha1.ReasonPending, "the HorizontalPodAutoscaler is created after the first answer from Pulsar")
	case o.Autoscaler == nil:
		return Unsure(v1alpha1.ReasonPending, "the HorizontalPodAutoscaler is about to be created")
	case !plan.ToleranceHonoured(o.Autoscaler):
		return Yes(v1alpha1.ReasonToleranceUnsupported, toleranceIsDropped)
	default:
		return Yes(v1alpha1.ReasonApplied, "HorizontalPodAutoscaler "+plan.AutoscalerName(o.Policy.Name)+" is up to date")
	}
}

// withLag is AutoscalerApplied with the warning that the autoscaler lags, or lagged until Auto chose Direct.
func withLag(o outcome, c metav1.Condition) metav1.Condition {
	lag := o.Actuator.Lag
	slow := o.Actuator.DirectUntil != nil || lag != nil && lag.Duration > plan.SlowAfter
	if !slow || c.Status != metav1.ConditionTrue || c.Reason == v1alpha1.ReasonToleranceUnsupported {
		return c
	}
	c.Reason = v1alpha1.ReasonActuationSlow
	if o.Actuator.DirectUntil == nil {
		c.Message += fmt.Sprintf("; it takes up to %s to set the decided replicas: %s, or set actuator: Direct",
			lag.Duration, plan.RaiseLimits)
	}
	return c
}

// notApplied is why the policy has no autoscaler. In mode Recommend it also has what would keep the policy from scaling
// in mode Auto.
func (o outcome) notApplied() (reason, message string) {
	if o.Paused() != "" {
		return v1alpha1.ReasonPaused, "no HorizontalPodAutoscaler or ScaledObject of the policy exists"
	}
	reason, message = v1alpha1.ReasonRecommendOnly, "mode is Recommend: no HorizontalPodAutoscaler is created"
	if v := plan.CheckForAuto(o.Subject, o.Autoscalers); v != nil && o.Violation == nil {
		reason, message = v.Reason, message+"; in mode Auto the policy would not scale: "+v.Message
	}
	return reason, message
}

const toleranceIsDropped = "this Kubernetes version drops the tolerance of a HorizontalPodAutoscaler, which then " +
	"ignores changes of up to 10 %"

// notChecked is a condition that follows from the target.
func notChecked() metav1.Condition {
	return Unsure(v1alpha1.ReasonNotChecked, "the target must be found first")
}

// scalesWithoutRestart warns of targets that restart their replicas when the number changes, or the calls of removed
// ones. The controller still scales them, those that restart in fewer and larger steps.
func scalesWithoutRestart(o outcome) metav1.Condition {
	interrupted := interruptsCalls(o)
	switch {
	case withoutTarget(o.Observed):
		return notChecked()
	case len(o.Target.Disturbances) > 0:
		var messages []string
		for _, d := range o.Target.Disturbances {
			messages = append(messages, d.Message)
		}
		return No(o.Target.Disturbances[0].Reason, strings.Join(messages, "; "))
	case interrupted != "":
		return No(v1alpha1.ReasonGracePeriodTooShort, interrupted)
	case o.state.Start.Restarts > 0:
		return Unsure(v1alpha1.ReasonNotChecked, "most replicas disconnected at recent changes of their number, and no "+
			"field of the target says why: see whether a change alters the template of its pods")
	default:
		return Yes(v1alpha1.ReasonUndisturbed, "a change of the number of replicas restarts none that run")
	}
}

// childMissing reports the entry at which Function Mesh stops before it creates or scales the target; nil for none. It
// is False if the user has to fix it, and Unknown while Function Mesh creates the child.
func childMissing(o plan.Observed) *metav1.Condition {
	if o.Target == nil || o.Target.MissingChild == nil {
		return nil
	}
	missing, mesh := *o.Target.MissingChild, o.Policy.Spec.ScaleTargetRef
	child := fmt.Sprintf("%s %s-%s", missing.Component.Kind, mesh.Name, missing.Component.Name)
	entry := fmt.Sprintf("entry %s in spec.%s of %s %s", missing.Component.Name, plan.MeshList(missing.Component.Kind),
		plan.KindFunctionMesh, mesh.Name)
	c := Unsure(v1alpha1.ReasonMeshBlocked, "")
	if o.OwnChildMissing() {
		c.Reason = v1alpha1.ReasonChildMissing
	}
	switch {
	case missing.Replicas >= missing.Least:
		c.Message = fmt.Sprintf("Function Mesh has not created %s of %s yet: look at the log of its operator if that stays "+
			"so", child, entry)
	case o.CreatesChild():
		c.Message = fmt.Sprintf("%s is at %d until Function Mesh has created %s, which it cannot with %d", entry,
			missing.Least, child, missing.Replicas)
	default:
		c.Status = metav1.ConditionFalse
		c.Message = fmt.Sprintf("Function Mesh stops at %s, for it cannot create %s with %d replicas: set replicas of "+
			"the entry to %d", entry, child, missing.Replicas, missing.Least)
	}
	return &c
}
