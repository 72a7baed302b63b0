// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// lookUpEvery is the minimum time between lookups of the writer of one target's replicas: each is a request to the API
// server. One event names all changes in between.
const lookUpEvery = 10 * time.Second

// NeedsWriter reports whether to look up the writer of the target's replicas. Where the controller writes them, its
// next write depends on the writer, so every change is looked up.
func NeedsWriter(o Observed) bool {
	return unexplained(o) && (writesItself(o) || o.Now.Sub(o.History.scales.lookedUpAt) >= lookUpEvery)
}

// writesItself reports whether the controller writes the next number of the target's replicas. An HPA or KEDA writes it
// at its next sync, and does nothing at zero.
func writesItself(o Observed) bool {
	return o.Actuator.Type == v1alpha1.ActuatorDirect || *o.Target.Replicas == 0
}

// unexplained reports whether others than the controller changed the replicas, by no decision.
func unexplained(o Observed) bool {
	return changedFrom(o) != nil && !o.History.scales.wrote(*o.Target.Replicas)
}

// changedFrom is the number of replicas before a change that was not decided; nil for none. Where the policy does not
// scale, such as beside another autoscaler, no change is decided. A function worker does not report the writer.
func changedFrom(o Observed) *int32 {
	if !o.Applies() || o.Violation != nil || o.Target == nil || o.Target.Replicas == nil ||
		o.Target.Scaling == ByWorker || o.Waiting() {
		return nil
	}
	before, status := o.History.scales, o.Policy.Status
	if before.replicas == nil {
		before.replicas = status.SpecReplicas // of the process before this one
	}
	decided := status.DesiredReplicas != nil && *status.DesiredReplicas == *o.Target.Replicas
	switch {
	case before.reverted(*o.Target.Replicas, o.Now):
		return before.written
	case before.replicas == nil || before.at(*o.Target.Replicas):
		return nil
	case decided && !before.unnamed: // a change without a named writer became the decision
		return nil
	default:
		return before.replicas
	}
}

// What wrote the replicas of a target, besides the actuator of the policy.
const (
	ScaledExternally = "External"
	// ScaledByUnknown: the writer was not looked up.
	ScaledByUnknown = "Unknown"
)

// ScaledBy is what wrote the target's replicas, if they changed.
func ScaledBy(o Observed) string {
	switch {
	case !o.Applies() || o.Violation != nil || DetectManualScale(o) != nil:
		return ScaledExternally
	case o.Writer == nil && unexplained(o):
		return ScaledByUnknown
	default:
		return string(o.Actuator.Type)
	}
}

// DetectManualScale is the manual scale of this reconcile; nil for none.
func DetectManualScale(o Observed) *ManualScale {
	from := changedFrom(o)
	if o.Writer == nil || from == nil || (o.Writer.Failed == nil && writesForPolicy(o, o.Writer.Writer)) {
		return nil
	}
	return &ManualScale{
		Field: strings.Join(replicasPath(o.Policy.Spec.ScaleTargetRef, o.Target.Scaling), "."),
		From:  *from, To: *o.Target.Replicas, NoticedAt: o.Now, WriterLookup: *o.Writer,
	}
}

// writesForPolicy reports whether the writer is the controller, or an autoscaler that follows its decisions. After
// several decisions an autoscaler may write one that is no longer the last.
func writesForPolicy(o Observed, w Writer) bool {
	switch w.Manager {
	case FieldManager:
		return true
	case managerControllerManager:
		return w.Subresource == subresourceScale &&
			(o.Autoscaler != nil || o.KEDAAutoscaler != nil || o.History.RecentlyDeleted(o.Now))
	case managerKEDA:
		return o.OwnScaledObject(o.Policy) != nil
	default:
		return false
	}
}

// WrittenPath is the field that identifies the writer of the replicas: a list of entries has one owner.
func WrittenPath(ref v1alpha1.ScaleTargetRef, scaling Scaling) []string {
	if scaling != ByMesh {
		return replicasPath(ref, scaling)
	}
	return []string{"spec", MeshList(ref.Component.Kind)}
}

// replicasPath is the field that has the number of replicas.
func replicasPath(ref v1alpha1.ScaleTargetRef, scaling Scaling) []string {
	if scaling != ByMesh {
		return []string{"spec", "replicas"}
	}
	return []string{"spec", fmt.Sprintf("%s[%s]", MeshList(ref.Component.Kind), ref.Component.Name), "replicas"}
}

// lastManualScale is the one of this reconcile, or an earlier one; nil for none.
func lastManualScale(o Observed) *ManualScale {
	if now := DetectManualScale(o); now != nil {
		return now
	}
	return o.History.scales.last
}

// manualRaise is the last manual scale as a decision explains it; nil if there is none or it lowered replicas.
func manualRaise(o Observed) *policy.ManualRaise {
	m := lastManualScale(o)
	if m == nil || m.To <= m.From {
		return nil
	}
	by := "an unknown writer"
	if m.Failed == nil {
		by = m.Writer.Name()
	}
	return &policy.ManualRaise{ReplicasAt: policy.ReplicasAt{At: m.NoticedAt, Replicas: m.To}, By: by}
}

// Seen is the history after the target's replicas were observed, whether or not the writer was looked up.
func (h History) Seen(o Observed) History {
	if o.Target == nil || o.Target.Replicas == nil || o.Waiting() {
		return h
	}
	from, ours := changedFrom(o), h.scales.wrote(*o.Target.Replicas)
	if from != nil && o.Writer == nil && !ours {
		h.scales.replicas, h.scales.unnamed = from, true
		return h
	}
	switch before := h.scales.replicas; {
	case from != nil:
		h.scales = h.scales.overruled(o, *from)
	case before == nil:
		h.scales.instead = createdBefore(o)
	case *before != *o.Target.Replicas:
		h.scales.instead = nil
	}
	if o.Writer != nil {
		h.scales.lookedUpAt, h.scales.last = o.Now, lastManualScale(o)
	}
	if ours || !h.scales.at(*o.Target.Replicas) || DetectManualScale(o) != nil {
		h.scales.written = nil
	}
	h.scales.replicas, h.scales.unnamed = o.Target.Replicas, false
	return h
}

// overruled is the history after a change that no decision explains.
func (s scaleHistory) overruled(o Observed, from int32) scaleHistory {
	before := s.instead
	s.instead = nil
	switch m := DetectManualScale(o); {
	case resetByManifest(o, m):
		s.resets = s.resets.add(*m, o.Now)
		if !s.resets.paused(o.Now) {
			s.instead = cmp.Or(before, &from)
		}
	case m == nil && s.creates && o.Target.raised(from):
		s.instead = &from
	}
	return s
}

// resetByManifest reports whether a tool that applies manifests changed the replicas where the controller writes them
// itself. Setting 0 replicas to switch scaling off is no reset.
func resetByManifest(o Observed, m *ManualScale) bool {
	return m != nil && m.Failed == nil && m.Writer.applies() && writesItself(o) && o.SwitchedOff() == nil
}

// createdBefore is what was decided if the process before this one raised the entry to have its child created, which
// its last report says; nil otherwise.
func createdBefore(o Observed) *int32 {
	decided := o.Policy.Status.DesiredReplicas
	found := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionTargetFound)
	if decided == nil || !Scales(o) || !o.Target.raised(*decided) ||
		found == nil || found.Reason != v1alpha1.ReasonChildMissing {
		return nil
	}
	return decided
}
