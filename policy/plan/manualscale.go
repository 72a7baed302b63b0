// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// lookUpEvery is how often the writer of one target's replicas is looked up at most: each time is a request to the API
// server. Changes in between are named together.
const lookUpEvery = 10 * time.Second

// ManualScale is a change of the target's replicas that neither the policy nor its autoscaler wrote.
type ManualScale struct {
	// Field is what was written, such as spec.replicas.
	Field    string
	From, To int32
	// NoticedAt is when the change was seen. The writer's own time is the API server's.
	NoticedAt time.Time
	WriterLookup
}

// String says who wrote it, or why that is not known; and what to do where the number will be written again.
func (m ManualScale) String() string {
	text := fmt.Sprintf("%s %d -> %d was written ", m.Field, m.From, m.To)
	switch {
	case m.To == 0 && errors.Is(m.Failed, ErrNoWriter):
		return text + "to the scale subresource, such as by kubectl scale: the API server does not track who writes 0 to it"
	case m.Failed != nil:
		return text + "by an unknown writer: " + m.Failed.Error()
	case m.Writer.applies():
		return text + fmt.Sprintf("by %s: let it ignore %s, or its next sync writes that number again", m.Writer, m.Field)
	default:
		return text + "by " + m.Writer.String()
	}
}

// scaleHistory is what is remembered of the target's replicas, to tell manual scales.
type scaleHistory struct {
	// replicas that were last explained; nil before any were seen.
	replicas *int32
	// instead are those that the next decision continues from while the target has replicas; nil for replicas themselves.
	instead *int32
	// written by the controller last and not seen since; nil for none.
	written *int32
	// unnamed says that a change from them was seen whose writer was not looked up yet.
	unnamed bool
	// lookedUpAt is when the writer was last looked up.
	lookedUpAt time.Time
	// last manual scale; nil for none.
	last   *ManualScale
	resets resets
}

// Seen is the history once a change of the target's replicas was seen, and its writer was looked up or not.
func (h History) Seen(o Observed) History {
	if o.Target == nil || o.Target.Replicas == nil || o.Waiting() {
		return h
	}
	from, ours := changedFrom(o), h.scales.wrote(o)
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
	h.scales.replicas, h.scales.unnamed = o.Target.Replicas, false
	if ours {
		h.scales.written = nil
	}
	return h
}

// after the actions.
func (s scaleHistory) after(actions Actions, result Result) scaleHistory {
	if actions.Replicas != nil && result.ScaleFailed == nil && result.ApplyFailed == nil {
		s.written = actions.Replicas
	}
	return s
}

// wrote says that the controller wrote the target's replicas.
func (s scaleHistory) wrote(o Observed) bool {
	return s.written != nil && *s.written == *o.Target.Replicas
}

// WriterIsSought says that it is to be looked up who wrote the target's replicas. Where the controller writes them, its
// next write depends on that: it is looked up at each change.
func WriterIsSought(o Observed) bool {
	due := o.Actuator.Type == v1alpha1.ActuatorDirect || o.Now.Sub(o.History.scales.lookedUpAt) >= lookUpEvery
	return due && changedFrom(o) != nil && !o.History.scales.wrote(o)
}

// changedFrom is the number of replicas before a change that was not decided; nil for none. Where the policy does not
// scale, such as beside another autoscaler, all changes are. A function worker does not tell who changed it.
func changedFrom(o Observed) *int32 {
	if !o.Policy.Spec.Mode.IsAuto() || o.Violation != nil || o.Target == nil || o.Target.Replicas == nil ||
		o.Target.Scaling == ByWorker || o.Waiting() {
		return nil
	}
	before, status := o.History.scales, o.Policy.Status
	if before.replicas == nil {
		before.replicas = status.SpecReplicas // of the process before this one
	}
	decided := status.DesiredReplicas != nil && *status.DesiredReplicas == *o.Target.Replicas
	switch {
	case before.replicas == nil || *before.replicas == *o.Target.Replicas:
		return nil
	case decided && !before.unnamed: // what was not named yet was adopted as the decision
		return nil
	default:
		return before.replicas
	}
}

// What wrote the replicas of a target, besides the actuator of the policy.
const (
	ScaledExternally = "External"
	// ScaledByUnknown: it was not looked up who did.
	ScaledByUnknown = "Unknown"
)

// ScaledBy is what wrote the target's replicas, where they changed.
func ScaledBy(o Observed) string {
	switch {
	case !o.Policy.Spec.Mode.IsAuto() || o.Violation != nil || NoticedManualScale(o) != nil:
		return ScaledExternally
	case o.Writer == nil && changedFrom(o) != nil && !o.History.scales.wrote(o):
		return ScaledByUnknown
	default:
		return string(o.Actuator.Type)
	}
}

// NoticedManualScale is the one that was noticed just now; nil for none.
func NoticedManualScale(o Observed) *ManualScale {
	from := changedFrom(o)
	if o.Writer == nil || from == nil || (o.Writer.Failed == nil && writesForPolicy(o, o.Writer.Writer)) {
		return nil
	}
	return &ManualScale{
		Field: strings.Join(replicasPath(o), "."), From: *from, To: *o.Target.Replicas, NoticedAt: o.Now,
		WriterLookup: *o.Writer,
	}
}

// writesForPolicy says that it is the controller, or an autoscaler that follows its decisions. Of decisions in a row an
// autoscaler may write one that is no longer the last.
func writesForPolicy(o Observed, w Writer) bool {
	switch w.Manager {
	case FieldManager:
		return true
	case managerControllerManager:
		return w.Subresource == subresourceScale &&
			(o.Autoscaler != nil || o.KEDAAutoscaler != nil || o.RecentlyDeleted())
	case managerKEDA:
		return o.ownScaledObject() != nil
	default:
		return false
	}
}

// WrittenPath is the field whose writer is the replicas' one: a list of entries has one owner.
func WrittenPath(o Observed) []string {
	if o.Target.Scaling != ByMesh {
		return replicasPath(o)
	}
	return []string{"spec", MeshList(o.Policy.Spec.ScaleTargetRef.Component.Kind)}
}

// replicasPath is the field that has the number of replicas.
func replicasPath(o Observed) []string {
	if o.Target.Scaling != ByMesh {
		return []string{"spec", "replicas"}
	}
	component := o.Policy.Spec.ScaleTargetRef.Component
	return []string{"spec", fmt.Sprintf("%s[%s]", MeshList(component.Kind), component.Name), "replicas"}
}

// lastManualScale is the one that was noticed now, or before; nil for none.
func lastManualScale(o Observed) *ManualScale {
	if now := NoticedManualScale(o); now != nil {
		return now
	}
	return o.History.scales.last
}

// manualRaise is the last manual scale as a decision explains it; nil for none, or one that lowered replicas.
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
