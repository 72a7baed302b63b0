// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const (
	// maxFleetTargets is how many targets the status names: 100 of up to 1.5 KB, and mostly 0.2 KB.
	maxFleetTargets = 100
	// fleetRefreshEvery bounds how often the status of a fleet is written while no condition changes: 1000 targets that
	// each change their replicas once a minute would ask for 17 writes a second of 20 KB each, and get one in ten seconds.
	fleetRefreshEvery = 10 * time.Second
	// maxNamed is how many objects a message names, and maxNamedText how much it says of each.
	maxNamed, maxNamedText = 3, 250
)

// FleetOutcome is what became of one pass over a fleet.
type FleetOutcome struct {
	Now   time.Time
	World FleetWorld
	// Failed is why children were not written as planned, to be tried again; nil when they were.
	Failed error
}

// FleetStatus is the status to write.
func FleetStatus(before v1alpha1.AutoscalingPolicyStatus, o FleetOutcome) v1alpha1.AutoscalingPolicyStatus {
	w := o.World
	after := *before.DeepCopy()
	after.ObservedGeneration = w.Policy.Generation
	after.Fleet, after.Target = nil, kinds(w.Policy)
	children := []fleetChild(nil)
	if w.Violation == nil {
		children = w.children()
		after.Fleet = w.summary(children)
		after.Target = fmt.Sprintf("%d of %d %s", after.Fleet.Governed, after.Fleet.Matched, kinds(w.Policy))
	}
	found := w.targetFound()
	for _, c := range []metav1.Condition{found, o.ready(found, children)} {
		c.ObservedGeneration, c.LastTransitionTime = w.Policy.Generation, metav1.NewTime(o.Now)
		c.Message = Shorten(c.Message, maxMessage)
		meta.SetStatusCondition(&after.Conditions, c)
	}
	return after
}

// FleetStatusDue says how long to wait before a status is written that was last written so long ago: nothing when a
// condition changed its status or the spec changed; false when there is nothing to write.
func FleetStatusDue(before, after v1alpha1.AutoscalingPolicyStatus, since time.Duration) (wait time.Duration,
	differs bool,
) {
	switch {
	case equality.Semantic.DeepEqual(before, after):
		return 0, false
	case before.ObservedGeneration != after.ObservedGeneration || (before.Fleet == nil) != (after.Fleet == nil):
		return 0, true
	}
	for _, name := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionTargetFound} {
		was, is := meta.FindStatusCondition(before.Conditions, name), meta.FindStatusCondition(after.Conditions, name)
		if was == nil || is == nil || was.Status != is.Status {
			return 0, true
		}
	}
	return max(0, fleetRefreshEvery-since), true
}

// FleetHasNoMetric says that a fleet as a whole has no measurements, and which policies to ask for.
func FleetHasNoMetric(p *v1alpha1.AutoscalingPolicy) string {
	fleet := p.Status.Fleet
	if fleet == nil || fleet.Governed == 0 {
		return fmt.Sprintf("AutoscalingPolicy %s has a targetSelector and governs nothing so far: ask for a policy that "+
			"names its target", p.Name)
	}
	var names []string
	for _, target := range fleet.Targets {
		names = append(names, target.Policy)
	}
	return fmt.Sprintf("AutoscalingPolicy %s has a targetSelector and no number of its own: ask for one of its %d "+
		"policies: %s", p.Name, fleet.Governed,
		enumerate(names, int(fleet.Governed)))
}

// kinds is such as Functions.
func kinds(p *v1alpha1.AutoscalingPolicy) string { return string(p.Spec.TargetSelector.Kind) + "s" }

// fleetChild is a governed object with the condition Ready of its policy.
type fleetChild struct {
	target v1alpha1.FleetTarget
	// message of the condition.
	message string
}

// rank brings what a user has to mend to the front.
func (c fleetChild) rank() int {
	switch metav1.ConditionStatus(c.target.Ready) {
	case metav1.ConditionFalse:
		return 0
	case metav1.ConditionTrue:
		return 2
	default:
		return 1
	}
}

// children are the governed objects, those that are not ready first. It has those that wait for
// their policy, too.
func (w FleetWorld) children() []fleetChild {
	var all []fleetChild
	for _, object := range w.Matched {
		if object.LeftBecause != "" || (object.Refused != "" && object.Live == nil) ||
			(object.isTaken(w.Policy) && !object.isLeaving(w.Policy)) {
			continue
		}
		child := fleetChild{
			target: v1alpha1.FleetTarget{
				Name: object.Name, Policy: ChildName(w.Policy.Name, FleetRef(w.Policy, object.Name)),
				Reason: v1alpha1.ReasonPending,
			},
			message: "its policy is new",
		}
		if live := object.Live; live != nil && !object.isLeaving(w.Policy) {
			child.target.CurrentReplicas, child.target.DesiredReplicas = live.Status.CurrentReplicas, live.Status.DesiredReplicas
			if c := meta.FindStatusCondition(live.Status.Conditions, v1alpha1.ConditionReady); c != nil {
				child.target.Ready, child.target.Reason, child.message = string(c.Status), Shorten(c.Reason, 1024), c.Message
			}
		}
		all = append(all, child)
	}
	slices.SortFunc(all, func(a, b fleetChild) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), strings.Compare(a.target.Name, b.target.Name))
	})
	return all
}

func (w FleetWorld) summary(children []fleetChild) *v1alpha1.Fleet {
	matched, governed := int32(len(w.Matched)), int32(len(children)) //nolint:gosec // as many as fit into memory
	fleet := &v1alpha1.Fleet{Matched: matched, Governed: governed}
	for i, child := range children {
		if child.target.Ready == string(metav1.ConditionTrue) {
			fleet.Ready++
		}
		if i < maxFleetTargets {
			fleet.Targets = append(fleet.Targets, child.target)
		}
	}
	return fleet
}

// targetFound is False when there is nothing that the fleet could govern.
func (w FleetWorld) targetFound() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionTargetFound, Status: metav1.ConditionFalse}
	var left []string
	inMesh := 0
	for _, object := range w.Matched {
		if object.LeftBecause != "" {
			left = append(left, object.Name+" ("+object.LeftBecause+")")
		}
		if object.InMesh {
			inMesh++
		}
	}
	switch {
	case w.Violation != nil:
		c.Reason, c.Message = w.Violation.Reason, w.Violation.Message
	case len(w.Matched) == 0:
		c.Reason = v1alpha1.ReasonNothingMatches
		c.Message = fmt.Sprintf("no %s in namespace %s matches %q: label one so, or correct spec.targetSelector",
			w.Policy.Spec.TargetSelector.Kind,
			w.Policy.Namespace, metav1.FormatLabelSelector(&w.Policy.Spec.TargetSelector.LabelSelector))
		if w.Policy.Spec.TargetSelector.Kind == kindStatefulSet {
			c.Message += "; only those that Pulsar's function worker made count"
		}
	case inMesh == len(w.Matched):
		c.Reason, c.Message = v1alpha1.ReasonOwnedByFunctionMesh, "left alone: "+enumerate(left, len(left))
	default:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonFound
		c.Message = fmt.Sprintf("%d %s match", len(w.Matched), kinds(w.Policy))
		if len(left) > 0 {
			c.Message += fmt.Sprintf(", %d of them left alone: %s", len(left), enumerate(left, len(left)))
		}
	}
	return c
}

// ready is True when all that the fleet governs are Ready.
func (o FleetOutcome) ready(found metav1.Condition, children []fleetChild) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	taken, refused := o.World.obstacles()
	switch {
	case found.Status != metav1.ConditionTrue:
		c.Status, c.Reason, c.Message = found.Status, found.Reason, found.Message
	case len(taken) > 0:
		c.Reason = v1alpha1.ReasonPolicyNameTaken
		c.Message = "a policy that is not this one's has the name of one that is to be made, rename or delete it: " +
			enumerate(taken, len(taken))
	case len(refused) > 0:
		c.Reason, c.Message = v1alpha1.ReasonRefused, "the API server refuses policies: "+enumerate(refused, len(refused))
	case o.Failed != nil:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonApplyFailed
		c.Message = "it is tried again: " + o.Failed.Error()
	case len(children) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonCoveredByOtherPolicies
		c.Message = "all that matches is left to others"
	case children[0].rank() == 2:
		c.Status, c.Reason = metav1.ConditionTrue, children[0].target.Reason
		c.Message = fmt.Sprintf("the policies of all %d %s are Ready", len(children), kinds(o.World.Policy))
	default:
		var unready []string
		for _, child := range children {
			if child.rank() < 2 {
				unready = append(unready, child.target.Name+": "+child.message)
			}
		}
		if children[0].rank() > 0 {
			c.Status = metav1.ConditionUnknown
		}
		c.Reason = children[0].target.Reason
		c.Message = fmt.Sprintf("%d of %d %s are not ready: %s", len(unready), len(children), kinds(o.World.Policy),
			enumerate(unready, len(unready)))
	}
	return c
}

// obstacles are the objects for which the controller cannot make a policy.
func (w FleetWorld) obstacles() (taken, refused []string) {
	for _, object := range w.Matched {
		switch {
		case object.LeftBecause != "":
		case object.isTaken(w.Policy) && !object.isLeaving(w.Policy):
			taken = append(taken, "AutoscalingPolicy "+object.Live.Name+" for "+object.Name)
		case object.Refused != "":
			refused = append(refused, object.Name+": "+object.Refused)
		}
	}
	return taken, refused
}

// enumerate names the first of all.
func enumerate(names []string, all int) string {
	var short []string
	for _, name := range names[:min(maxNamed, len(names))] {
		short = append(short, Shorten(name, maxNamedText))
	}
	text := strings.Join(short, "; ")
	if more := all - len(short); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
