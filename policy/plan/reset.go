// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// revertedWithin is how soon after the controller undid a reset another one is a fight and no deploy: GitOps tools
	// revert within seconds where they correct drift, and repeat a sync every 3 to 10 minutes.
	revertedWithin = time.Minute
	// In a fight the controller waits for firstPause, then for pauseFactor times as long, up to longestPause: each write
	// starts replicas that the tool removes.
	firstPause, longestPause = 30 * time.Second, 10 * time.Minute
	pauseFactor              = 4
)

// resets are resets of the replicas by manifests.
type resets struct {
	// at is when the last reset was noticed, and by its writer.
	at time.Time
	by ManualScale
	// undoneAt is when the controller last undid one.
	undoneAt time.Time
	// pause is the time from the last reset until the controller undoes it.
	pause time.Duration
}

// add notes one more. One during a pause changes nothing: the controller had not written since.
func (r resets) add(m ManualScale, now time.Time) resets {
	switch {
	case r.undoneAt.Before(r.at):
		r.by = m
		return r
	case now.Sub(r.undoneAt) >= revertedWithin:
		r.pause = 0
	default:
		r.pause = min(max(firstPause, pauseFactor*r.pause), longestPause)
	}
	r.at, r.by = now, m
	return r
}

// undone notes that the controller wrote the replicas.
func (r resets) undone(now time.Time) resets {
	if r.undoneAt.Before(r.at) {
		r.undoneAt = now
	}
	return r
}

func (r resets) paused(now time.Time) bool { return now.Before(r.at.Add(r.pause)) }

// resetByManifest reports whether a tool that applies manifests changed the replicas where the controller writes them
// itself. An HPA or KEDA restores them at its next sync. Setting 0 replicas to switch scaling off is no reset.
func resetByManifest(o Observed, m *ManualScale) bool {
	return m != nil && m.Failed == nil && m.Writer.applies() && o.Actuator.Type == v1alpha1.ActuatorDirect &&
		SwitchedOff(o) == nil
}

// KeptReset is the hold in a fight with the tool that resets the replicas; nil for none.
func (o Observed) KeptReset() *policy.Hold {
	r := o.History.scales.resets
	if o.Actuator.Type != v1alpha1.ActuatorDirect || !r.paused(o.Now) {
		return nil
	}
	return &policy.Hold{
		Reason: policy.HoldReset,
		Message: fmt.Sprintf("%s was reset within a minute after the controller had written it back, by %s: leave it out "+
			"of the manifest and have the tool ignore it, see docs/gitops.md; the controller pauses for %s before it writes it "+
			"again", r.by.Field, r.by.Writer, duration.HumanDuration(r.pause)),
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
		if !s.resets.paused(o.Now) {
			s.instead = cmp.Or(before, &from)
		}
	case m == nil && createdAtZero(o.Target, from):
		s.instead = &from
	}
	return s
}

// createdBefore is 0 if createdAtZero was true in the process before this one; nil otherwise.
func createdBefore(o Observed) *int32 {
	decided := o.Policy.Status.DesiredReplicas
	if decided == nil || !Scales(o) || !createdAtZero(o.Target, *decided) {
		return nil
	}
	return decided
}

// createdAtZero reports whether the controller raised the entry of a FunctionMesh from 0 to 1 to have its child
// created.
func createdAtZero(target *Target, decided int32) bool {
	return target.Scaling == ByMesh && decided == 0 && *target.Replicas == 1
}
