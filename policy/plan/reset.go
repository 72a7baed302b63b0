// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// resetWindow is the time within which a second reset of the replicas by a manifest is a fight, the time for which the
// controller then holds them, and the time after that in which one more reset is enough. GitOps tools repeat a sync
// every 3 to 10 minutes, and within seconds where they correct drift.
const resetWindow = 10 * time.Minute

// resets are resets of the replicas by manifests.
type resets struct {
	// last is when the last reset was noticed.
	last time.Time
	// until is the end of the hold after two of them; zero before the first hold.
	until time.Time
	// by is the writer of the last reset.
	by ManualScale
}

// add notes one more.
func (r resets) add(m ManualScale, now time.Time) resets {
	recent := func(t time.Time) bool { return !t.IsZero() && now.Sub(t) < resetWindow }
	if recent(r.last) || recent(r.until) {
		r.until = now.Add(resetWindow)
	}
	r.last, r.by = now, m
	return r
}

// resetByManifest reports whether a tool that applies manifests changed the replicas where the controller writes them
// itself. An HPA or KEDA restores them at its next sync. Setting 0 replicas to switch scaling off is no reset.
func resetByManifest(o Observed, m *ManualScale) bool {
	return m != nil && m.Failed == nil && m.Writer.applies() && o.Actuator.Type == v1alpha1.ActuatorDirect &&
		!SwitchedOff(o)
}

// keptReset is the hold after resets that the controller does not fight; nil for none.
func (o Observed) keptReset() *policy.Hold {
	r := o.History.scales.resets
	if o.Actuator.Type != v1alpha1.ActuatorDirect || !o.Now.Before(r.until) {
		return nil
	}
	return &policy.Hold{
		Reason: policy.HoldReset,
		Message: fmt.Sprintf("%s was reset twice within 10 minutes by %s: leave it out of the manifest and have the tool "+
			"ignore it, see docs/gitops.md; the controller writes it again in 10 minutes", r.by.Field, r.by.Writer),
	}
}

// CurrentReplicas is the number that a decision continues from: the target's, or the number before a manifest reset it
// or the controller wrote 1 to have a component created. The target must have replicas.
func (o Observed) CurrentReplicas() int32 {
	if s := o.History.scales; s.instead != nil && s.replicas != nil && *s.replicas == *o.Target.Replicas {
		return *s.instead
	}
	return *o.Target.Replicas
}

// overruled is the history after a change that no decision explains.
func (s scaleHistory) overruled(o Observed, from int32) scaleHistory {
	before := s.instead
	s.instead = nil
	switch m := DetectManualScale(o); {
	case resetByManifest(o, m):
		s.resets = s.resets.add(*m, o.Now)
		if !o.Now.Before(s.resets.until) {
			s.instead = cmp.Or(before, &from)
		}
	case m == nil && createdAtZero(o, from):
		s.instead = &from
	}
	return s
}

// createdBefore is 0 if createdAtZero was true in the process before this one; nil otherwise.
func createdBefore(o Observed) *int32 {
	decided := o.Policy.Status.DesiredReplicas
	if decided == nil || !scales(o) || !createdAtZero(o, *decided) {
		return nil
	}
	return decided
}

// createdAtZero reports whether the controller raised the entry of a FunctionMesh from 0 to 1 to have its child
// created.
func createdAtZero(o Observed, decided int32) bool {
	return o.Target.Scaling == ByMesh && decided == 0 && *o.Target.Replicas == 1
}
