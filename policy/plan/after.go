// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"time"
)

// After is the history after the actions.
func (h History) After(o Observed, actions Actions, result Result) History {
	h.suspended, h.generation = h.suspendedAfter(o, actions, result), o.Policy.Generation
	if o.Reading != nil && o.Subscription() != nil {
		h.target = cmp.Or(o.Target.UID, h.target)
	}
	if actions.RemoveAutoscaler && o.Autoscaler != nil && result.Autoscaler == nil {
		h.autoscalerDeletedAt = o.Now
	}
	switch {
	case result.Refused:
		h.refusal = &failure{*result.Violation, identity(o), o.Policy.Generation, o.Now, retryRefusedEvery}
	case (actions.Autoscaler != nil || actions.ScaledObject != nil) && result.ApplyFailed == nil:
		h.refusal = nil
	}
	if actions.Autoscaler != nil {
		h.lackingSince = h.toleranceLackedSince(o, actions)
	}
	h.handover = h.handoverAfter(o, actions, result)
	if result.Restored {
		h.restoredAt = o.Now
	}
	h.scales = h.scales.after(o, actions, result)
	return h
}

// suspendedAfter starts empty for a changed policy and for another target.
func (h History) suspendedAfter(o Observed, actions Actions, result Result) map[string]time.Time {
	before := h.suspended
	if h.generation != o.Policy.Generation || o.Target != nil && h.recreated(o.Target.UID) {
		before = nil
	}
	if !result.Suspended {
		return before
	}
	after := map[string]time.Time{actions.Suspend.String(): o.Now}
	maps.Copy(after, before) // the first time of a name counts
	return after
}

func (h History) handoverAfter(o Observed, actions Actions, result Result) *failure {
	switch {
	case actions.Suspend == nil && actions.Restore == nil:
		return h.handover
	case result.ApplyFailed == nil || result.Violation == nil:
		return nil
	}
	wait, step := firstRetry, handoverStep(actions)
	if h.handover.same(o.Policy, step) {
		wait = min(2*h.handover.wait, lastRetry)
	}
	return &failure{*result.Violation, step, o.Policy.Generation, o.Now, wait}
}

func (h History) toleranceLackedSince(o Observed, actions Actions) time.Time {
	switch since := h.lackingSince; {
	case o.Autoscaler == nil || ToleranceHonoured(o.Autoscaler):
		return time.Time{}
	case since.IsZero() || actions.Reapply:
		return o.Now
	default:
		return since
	}
}

// after the actions.
func (s scaleHistory) after(o Observed, actions Actions, result Result) scaleHistory {
	s.failed = result.ScaleFailed
	if result.ScaleFailed == nil && actions.MayScale(o, result.ApplyFailed == nil && !result.Refused) {
		if s.written == nil || *s.written != *actions.Replicas {
			s.writtenAt = o.Now
		}
		s.written, s.creates, s.resets = actions.Replicas, o.CreatesChild(), s.resets.undone(o.Now)
	}
	return s
}
