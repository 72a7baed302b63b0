// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package set

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

const (
	// maxNotReady is how many objects the status lists: 100 of up to 1 KB, usually 0.3 KB.
	maxNotReady = 100
	// refreshEvery bounds how often a set's status is written while no condition changes: 1000 objects that become
	// ready one by one would need as many writes of 30 KB.
	refreshEvery = 10 * time.Second
	// maxNamed is the number of objects that a message names, and maxNamedText bounds the text of each.
	maxNamed, maxNamedText = 3, 250
	// maxObjectMessage bounds the message of an object in the status.
	maxObjectMessage = 256
)

// Outcome is the result of one reconcile of a set.
type Outcome struct {
	Now      time.Time
	Observed Observed
	// Failed is why policies were not written; the write is retried. Nil if they were.
	Failed error
}

// Status is the status to write.
func Status(before v1alpha1.AutoscalingPolicySetStatus, o Outcome) v1alpha1.AutoscalingPolicySetStatus {
	after := *before.DeepCopy()
	after.ObservedGeneration = o.Observed.Set.Generation
	after.Matched, after.Governed, after.Ready, after.NotReady = nil, nil, nil, nil
	objects := o.Observed.objects()
	if o.Observed.Violation == nil {
		after.Matched, after.Governed, after.Ready = new(int32), new(int32), new(int32)
		for _, object := range objects {
			*after.Matched++
			if object.governed {
				*after.Governed++
			}
			if object.rank == rankReady {
				*after.Ready++
			} else if len(after.NotReady) < maxNotReady {
				after.NotReady = append(after.NotReady, object.PolicySetObject)
			}
		}
	}
	found, applied := o.Observed.targetFound(objects), o.policiesApplied()
	set := func(name string, c metav1.Condition) {
		c.Type = name
		report.SetCondition(&after.Conditions, c, o.Observed.Set.Generation, o.Now)
	}
	set(v1alpha1.ConditionReady, allReady(objects, found, applied))
	set(v1alpha1.ConditionTargetFound, found)
	set(v1alpha1.ConditionPoliciesApplied, applied)
	after.Conditions = report.WithStalled(after.Conditions, o.Observed.Set.Generation, o.Now)
	return after
}

// StatusDue returns how long to wait before writing a status, by the time since the last write: 0 if the spec
// or the status of a condition changed; false if there is nothing to write.
func StatusDue(before, after v1alpha1.AutoscalingPolicySetStatus, since time.Duration) (wait time.Duration,
	differs bool,
) {
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return 0, false
	case before.ObservedGeneration != after.ObservedGeneration || (before.Matched == nil) != (after.Matched == nil):
		return 0, true
	}
	for _, is := range after.Conditions {
		if was := meta.FindStatusCondition(before.Conditions, is.Type); was == nil || was.Status != is.Status {
			return 0, true
		}
	}
	return max(0, refreshEvery-since), true
}

// The order in which the status lists objects: those that need a fix come first.
const (
	rankFalse = iota
	rankUnknown
	rankNotGoverned
	rankReady
)

// rankedObject is a matched object with its rank.
type rankedObject struct {
	v1alpha1.PolicySetObject
	rank int
	// governed is true if it has a policy of the set, or gets one.
	governed bool
}

// objects that match, by rank.
func (observed Observed) objects() []rankedObject {
	all := make([]rankedObject, 0, len(observed.Matched))
	for _, object := range observed.Matched {
		one := observed.describe(object)
		one.Kind, one.Name, one.Component = object.Ref.Kind, object.Ref.Name, object.Ref.Component
		one.Message = plan.Shorten(one.Message, maxObjectMessage)
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b rankedObject) int { return cmp.Compare(a.rank, b.rank) })
	return all
}

// describe returns the object with its readiness and the reason.
func (observed Observed) describe(object MatchedObject) rankedObject {
	of := func(rank int, policy, reason, message string) rankedObject {
		object := v1alpha1.PolicySetObject{Policy: policy, Reason: reason, Message: message}
		return rankedObject{PolicySetObject: object, rank: rank}
	}
	switch {
	case object.NotGoverned != nil:
		return of(rankNotGoverned, object.NotGoverned.Policy, object.NotGoverned.Reason, object.NotGoverned.Message)
	case object.isTaken(observed.Set):
		return of(rankFalse, "", v1alpha1.ReasonPolicyNameTaken, nameTaken(object))
	case object.Refused != "" && object.Live == nil:
		return of(rankFalse, "", v1alpha1.ReasonRefused, object.Refused)
	}
	one := of(rankUnknown, object.PolicyName, v1alpha1.ReasonPending, "its policy is new")
	one.governed = true
	if object.Live == nil || object.isBeingDeleted(observed.Set) {
		return one
	}
	c := meta.FindStatusCondition(object.Live.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case object.Refused != "":
		one.rank, one.Reason, one.Message = rankFalse, v1alpha1.ReasonRefused, object.Refused
	case object.Live.Generation != ObservedGeneration(object.Live): // its condition is that of another spec
		one.Message = "its spec was changed and is not observed yet"
	case c != nil:
		one.rank, one.Reason, one.Message = rankOf(c.Status), c.Reason, c.Message
	}
	return one
}

// ObservedGeneration of a policy: that of its status, or of its condition Ready after a reconcile that failed.
func ObservedGeneration(p *v1alpha1.AutoscalingPolicy) int64 {
	c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return p.Status.ObservedGeneration
	}
	return max(p.Status.ObservedGeneration, c.ObservedGeneration)
}

func rankOf(status metav1.ConditionStatus) int {
	switch status {
	case metav1.ConditionTrue:
		return rankReady
	case metav1.ConditionFalse:
		return rankFalse
	default:
		return rankUnknown
	}
}

func nameTaken(object MatchedObject) string {
	return fmt.Sprintf("AutoscalingPolicy %s, which this set does not control, has the name of its policy: rename or "+
		"delete it", object.Live.Name)
}

// targetFound is False if there is nothing that a policy could scale.
func (observed Observed) targetFound(objects []rankedObject) metav1.Condition {
	unscalable := func(object rankedObject) bool {
		return object.rank == rankNotGoverned && object.Policy == ""
	}
	switch {
	case observed.Violation != nil:
		return report.No(observed.Violation.Reason, observed.Violation.Message)
	case len(objects) == 0:
		return report.No(v1alpha1.ReasonNothingMatches, fmt.Sprintf("no Function, Sink, Source or FunctionMesh in namespace "+
			"%s, and no StatefulSet there that Pulsar's function worker created, matches %q: label one so, or correct "+
			"spec.selector", observed.Set.Namespace, metav1.FormatLabelSelector(&observed.Set.Spec.Selector)))
	case !slices.ContainsFunc(objects, func(object rankedObject) bool { return !unscalable(object) }):
		return report.No(objects[0].Reason, enumerate(objects))
	default:
		return report.Yes(v1alpha1.ReasonFound, fmt.Sprintf("%d match", len(objects)))
	}
}

// policiesApplied is True if each governed object has the policy of the template.
func (o Outcome) policiesApplied() metav1.Condition {
	var refused, names []string
	for _, object := range o.Observed.Matched {
		switch {
		case object.NotGoverned != nil:
		case object.isTaken(o.Observed.Set):
			names = append(names, shortRef(object.Ref)+": "+nameTaken(object))
		case object.Refused != "":
			refused = append(refused, shortRef(object.Ref)+": "+object.Refused)
		}
	}
	switch {
	case o.Observed.Violation != nil:
		return report.Unsure(v1alpha1.ReasonNotChecked, "the selector must be valid first; policies stay as they are")
	case len(names) > 0:
		return report.No(v1alpha1.ReasonPolicyNameTaken, listed(names))
	case len(refused) > 0:
		return report.No(v1alpha1.ReasonRefused, "the API server refuses policies: "+listed(refused))
	case o.Failed != nil:
		return report.Unsure(v1alpha1.ReasonApplyFailed, "the controller tries again: "+o.Failed.Error())
	default:
		return report.Yes(v1alpha1.ReasonApplied, "policies match the template")
	}
}

// allReady is the condition Ready: True if all that the set governs is ready.
func allReady(objects []rankedObject, found, applied metav1.Condition) metav1.Condition {
	notReady, governed := 0, 0
	for _, object := range objects {
		if object.rank < rankNotGoverned {
			notReady++
		}
		if object.rank != rankNotGoverned {
			governed++
		}
	}
	switch {
	case found.Status != metav1.ConditionTrue:
		return found
	case applied.Status != metav1.ConditionTrue:
		return applied
	case governed == 0:
		return report.Yes(v1alpha1.ReasonNotGoverned, fmt.Sprintf("the set governs none of %d: %s", len(objects),
			enumerate(objects)))
	case notReady == 0:
		return report.Yes(v1alpha1.ReasonAllReady, fmt.Sprintf("%d of %d policies are Ready", governed, governed))
	}
	c := report.No(objects[0].Reason, fmt.Sprintf("%d of %d are not ready: %s", notReady, governed,
		enumerate(objects[:notReady])))
	if objects[0].rank == rankUnknown {
		c.Status = metav1.ConditionUnknown
	}
	return c
}

// enumerate lists the first objects with why they are not ready or not governed.
func enumerate(objects []rankedObject) string {
	texts := make([]string, 0, len(objects))
	for _, object := range objects {
		ref := v1alpha1.ScaleTargetRef{Kind: object.Kind, Name: object.Name, Component: object.Component}
		texts = append(texts, shortRef(ref)+": "+object.Message)
	}
	return listed(texts)
}

// shortRef is such as Function/resize.
func shortRef(ref v1alpha1.ScaleTargetRef) string {
	return plan.ShortName(v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: ref})
}

// listed is plan.Enumerate of shortened texts.
func listed(texts []string) string {
	texts = slices.Clone(texts)
	for i := range texts {
		texts[i] = plan.Shorten(texts[i], maxNamedText)
	}
	return plan.Enumerate(texts, maxNamed, "; ")
}
