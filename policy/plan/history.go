// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const (
	// cacheLag is how long after a write the caches may be out of date: usually milliseconds.
	cacheLag = 5 * time.Second
	// retryRefusedEvery is how often a refused apply is retried while the observed objects stay the same: permissions and
	// admission rules may have changed.
	retryRefusedEvery = time.Minute
	// A takeover or a restore that failed is retried after firstRetry, which doubles up to lastRetry: each attempt writes
	// to another controller's object.
	firstRetry, lastRetry = 2 * time.Second, time.Minute
	// retryToleranceEvery is how often an autoscaler without the tolerance is applied again: a server keeps it after an
	// upgrade to 1.35. With 10k policies on an older server that is 3 applies a second, which change nothing.
	retryToleranceEvery = time.Hour
)

// History is what earlier reconciles of a policy in this process wrote, as far as later ones depend on it.
type History struct {
	// target is the UID of the target of the last decision with a reading, as far as it had one.
	target string
	// refusal is the last apply, where the API server refused it.
	refusal *refusal
	// autoscalerDeletedAt is when our HorizontalPodAutoscaler was deleted last.
	autoscalerDeletedAt time.Time
	// lackingSince is since when the autoscaler has lacked the tolerance, or when it was last reapplied for that.
	lackingSince time.Time
	// suspended is when each autoscaler was suspended first for this generation of the policy.
	suspended  map[string]time.Time
	generation int64
	// handover is the last takeover or restore, where it failed.
	handover *failedHandover
	// reportedAt is when the status was written last, and changesUntil grows with each change of its reasons alone.
	reportedAt, changesUntil time.Time
	// restoredAt is when what was suspended was restored, while the policy stays.
	restoredAt time.Time
	// scales of the target that others wrote.
	scales scaleHistory
	// findings are since when the target has not followed, and since when messages have met or missed the objective.
	findings findings
	// events that were recorded.
	events eventHistory
}

// refusal is an apply that the API server refused, and that only a change elsewhere can fix.
type refusal struct {
	violation  Violation
	at         time.Time
	generation int64
	// found is the identity of the autoscaler before the apply.
	found string
}

// failedHandover is a takeover or a restore that failed.
type failedHandover struct {
	violation Violation
	// step that failed.
	step       string
	generation int64
	// at is when it failed, and wait how long until the next attempt.
	at   time.Time
	wait time.Duration
}

// After is the history after the actions.
func (h History) After(o Observed, actions Actions, result Result) History {
	if o.Reading != nil && o.Subscription() != nil {
		h.target = cmp.Or(o.Target.UID, h.target)
	}
	if actions.RemoveAutoscaler && o.Autoscaler != nil && result.Autoscaler == nil {
		h.autoscalerDeletedAt = o.Now
	}
	switch {
	case result.Refused:
		h.refusal = &refusal{*result.Violation, o.Now, o.Policy.Generation, identity(o)}
	case (actions.Autoscaler != nil || actions.ScaledObject != nil) && result.ApplyFailed == nil:
		h.refusal = nil
	}
	if actions.Autoscaler != nil {
		h.lackingSince = h.toleranceLackedSince(o, actions)
	}
	h.handover = h.handoverAfter(o, actions, result)
	if h.generation != o.Policy.Generation {
		h.generation, h.suspended = o.Policy.Generation, nil
	}
	if result.Suspended {
		h.suspended = withFirst(h.suspended, actions.Suspend.String(), o.Now)
	}
	if result.Restored {
		h.restoredAt = o.Now
	}
	h.scales = h.scales.after(actions, result)
	return h
}

// withFirst adds the time of a name that has none.
func withFirst(times map[string]time.Time, name string, now time.Time) map[string]time.Time {
	if _, found := times[name]; found {
		return times
	}
	times = maps.Clone(times)
	if times == nil {
		times = map[string]time.Time{}
	}
	times[name] = now
	return times
}

// recreated says that the target is another object than at the last decision with a reading.
func (h History) recreated(uid string) bool {
	return h.target != "" && uid != "" && h.target != uid
}

// standingRefusal is why the API server would refuse the autoscaler again; nil if it may accept it.
func (h History) standingRefusal(o Observed) *Violation {
	r := h.refusal
	if r == nil || r.generation != o.Policy.Generation || r.found != identity(o) ||
		o.Now.Sub(r.at) >= retryRefusedEvery {
		return nil
	}
	return &r.violation
}

// handoverStep names the takeover or restore of the actions.
func handoverStep(actions Actions) string {
	if actions.Suspend != nil {
		return actions.Suspend.String()
	}
	return "restore"
}

func (h History) handoverAfter(o Observed, actions Actions, result Result) *failedHandover {
	switch {
	case actions.Suspend == nil && actions.Restore == nil:
		return h.handover
	case result.ApplyFailed == nil || result.Violation == nil:
		return nil
	}
	wait, step := firstRetry, handoverStep(actions)
	if last := h.handover; last != nil && last.step == step && last.generation == o.Policy.Generation {
		wait = min(2*last.wait, lastRetry)
	}
	return &failedHandover{*result.Violation, step, o.Policy.Generation, o.Now, wait}
}

// pacedHandover leaves out a takeover or a restore that failed, until its next attempt.
func (h History) pacedHandover(o Observed, actions Actions) Actions {
	f := h.handover
	if f == nil || f.step != handoverStep(actions) || f.generation != o.Policy.Generation || o.Now.Sub(f.at) >= f.wait {
		return actions
	}
	return Actions{Violation: &f.violation}
}

// identity of the autoscaler that an apply changes, without its status, which changes at every sync.
func identity(o Observed) string {
	identity := string(o.Actuator.Type) + " "
	switch {
	case o.Actuator.Type == v1alpha1.ActuatorKEDA && o.ScaledObject != nil:
		identity += string(o.ScaledObject.UID)
	case o.Actuator.Type == v1alpha1.ActuatorHPA && o.Autoscaler != nil:
		identity += string(o.Autoscaler.UID)
	}
	return identity
}

// toleranceDue says that it is time to reapply an autoscaler that lacks the tolerance.
func (h History) toleranceDue(o Observed) bool {
	since := h.lackingSince
	return o.Autoscaler != nil && !ToleranceHonoured(o.Autoscaler) && !since.IsZero() &&
		o.Now.Sub(since) >= retryToleranceEvery
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

// RecentlyDeleted says that KEDA's webhook may still see the deleted HorizontalPodAutoscaler.
func (o Observed) RecentlyDeleted() bool { return o.Now.Sub(o.History.autoscalerDeletedAt) < cacheLag }

// recentlyRestored says that the caches may not show yet what was restored.
func (h History) recentlyRestored(o Observed) bool { return o.Now.Sub(h.restoredAt) < cacheLag }

// suspendedAgain says that a suspended autoscaler was recreated. The controller does not fight the tool that does so,
// such as a GitOps controller.
func (h History) suspendedAgain(o Observed, step Suspension) bool {
	since, found := h.suspended[step.String()]
	return found && !step.Orphaned && h.generation == o.Policy.Generation && o.Now.Sub(since) > cacheLag
}
