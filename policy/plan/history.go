// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const (
	// cacheLag is how long the caches may be outdated after a write: usually milliseconds.
	cacheLag = 5 * time.Second
	// retryRefusedEvery is how often a refused apply is retried while the observed objects stay the same: permissions and
	// admission rules may have changed.
	retryRefusedEvery = time.Minute
	// A failed takeover or restore is retried after firstRetry, which doubles up to lastRetry: each attempt writes to
	// another controller's object.
	firstRetry, lastRetry = 2 * time.Second, time.Minute
	// retryToleranceEvery is how often an autoscaler without the tolerance is applied again: a server keeps it after an
	// upgrade to 1.35. With 10,000 policies on an older server these are 3 applies a second, which change nothing.
	retryToleranceEvery = time.Hour
)

// History is what earlier reconciles of a policy in this process wrote, as far as later ones depend on it.
type History struct {
	// target is the UID of the target at the last decision with a reading; empty if it had none.
	target string
	// refusal is the last apply, if the API server refused it.
	refusal *failure
	// autoscalerDeletedAt is when our HorizontalPodAutoscaler was last deleted.
	autoscalerDeletedAt time.Time
	// lackingSince is when the autoscaler was first seen without the tolerance, or when it was last reapplied for that.
	lackingSince time.Time
	// suspended is when each autoscaler was first suspended for this generation of the policy.
	suspended  map[string]time.Time
	generation int64
	// handover is the last takeover or restore, if it failed.
	handover *failure
	// restoredAt is when the suspended autoscalers were restored while the policy stays.
	restoredAt time.Time
	// scales are the changes of the replicas by other writers.
	scales scaleHistory
}

// failure is a write that failed and is tried again later. A change of the policy or of what it wrote is tried at once.
type failure struct {
	problem Violation
	// of identifies what was written.
	of         string
	generation int64
	// at is when it failed, and wait the time until the next attempt.
	at   time.Time
	wait time.Duration
}

// same reports whether the last attempt was to write the same.
func (f *failure) same(o Observed, of string) bool {
	return f != nil && f.of == of && f.generation == o.Policy.Generation
}

// pausing is why it failed, while it is too early to try again; nil otherwise.
func (f *failure) pausing(o Observed, of string) *Violation {
	if !f.same(o, of) || o.Now.Sub(f.at) >= f.wait {
		return nil
	}
	return &f.problem
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
		h.refusal = &failure{*result.Violation, identity(o), o.Policy.Generation, o.Now, retryRefusedEvery}
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
	h.scales = h.scales.after(actions, result, o.Now)
	return h
}

// withFirst adds the time of a name that is not in times.
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

// recreated reports whether the target is another object than at the last decision with a reading.
func (h History) recreated(uid string) bool {
	return h.target != "" && uid != "" && h.target != uid
}

// handoverStep names the takeover or restore of the actions.
func handoverStep(actions Actions) string {
	if actions.Suspend != nil {
		return actions.Suspend.String()
	}
	return "restore"
}

func (h History) handoverAfter(o Observed, actions Actions, result Result) *failure {
	switch {
	case actions.Suspend == nil && actions.Restore == nil:
		return h.handover
	case result.ApplyFailed == nil || result.Violation == nil:
		return nil
	}
	wait, step := firstRetry, handoverStep(actions)
	if h.handover.same(o, step) {
		wait = min(2*h.handover.wait, lastRetry)
	}
	return &failure{*result.Violation, step, o.Policy.Generation, o.Now, wait}
}

// pacedHandover leaves out a failed takeover or restore until its next attempt.
func (h History) pacedHandover(o Observed, actions Actions) Actions {
	if v := h.handover.pausing(o, handoverStep(actions)); v != nil {
		return Actions{Violation: v}
	}
	return actions
}

// identity of the autoscaler that an apply changes, without its status, which changes at every sync.
func identity(o Observed) string {
	switch {
	case o.Actuator.Type == v1alpha1.ActuatorKEDA && o.ScaledObject != nil:
		return string(o.Actuator.Type) + " " + string(o.ScaledObject.UID)
	case o.Actuator.Type == v1alpha1.ActuatorHPA && o.Autoscaler != nil:
		return string(o.Actuator.Type) + " " + string(o.Autoscaler.UID)
	default:
		return string(o.Actuator.Type)
	}
}

// toleranceDue reports whether it is time to reapply an autoscaler that lacks the tolerance.
func (h History) toleranceDue(live *autoscalingv2.HorizontalPodAutoscaler, now time.Time) bool {
	since := h.lackingSince
	return live != nil && !ToleranceHonoured(live) && !since.IsZero() && now.Sub(since) >= retryToleranceEvery
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

// RecentlyDeleted reports whether KEDA's webhook may still see the deleted HorizontalPodAutoscaler.
func (o Observed) RecentlyDeleted() bool { return o.Now.Sub(o.History.autoscalerDeletedAt) < cacheLag }

// recentlyRestored reports whether the caches may not show the restored objects yet.
func (h History) recentlyRestored(now time.Time) bool { return now.Sub(h.restoredAt) < cacheLag }

// suspendedAgain reports whether a suspended autoscaler was recreated. The controller does not fight the tool that
// recreates it, such as a GitOps controller.
func (h History) suspendedAgain(o Observed, step Suspension) bool {
	since, found := h.suspended[step.String()]
	return found && !step.Orphaned && h.generation == o.Policy.Generation && o.Now.Sub(since) > cacheLag
}
