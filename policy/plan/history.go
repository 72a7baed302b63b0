// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const (
	// settleFor is how long after a write the caches may still show what was before: watches lag by milliseconds as a
	// rule.
	settleFor = 5 * time.Second
	// retryRefusedEvery is how often a refused apply is retried when nothing that we see changed: permissions and
	// admission rules change out of our sight.
	retryRefusedEvery = time.Minute
	// retryToleranceEvery is how often an autoscaler without the tolerance is applied anew: a server that was upgraded
	// to 1.35 keeps it then. At 10k policies on an older one that is 3 applies a second, which change nothing.
	retryToleranceEvery = time.Hour
)

// History is what earlier reconciles of a policy in this process wrote, as far as later ones depend on it.
type History struct {
	// target is the UID of what the last decision on a reading was about.
	target string
	// refusal is the last apply, where the API server refused it.
	refusal *refusal
	// autoscalerDeletedAt is when our HorizontalPodAutoscaler was deleted last.
	autoscalerDeletedAt time.Time
	// lackingSince is since when the autoscaler has lacked the tolerance, or when it was last applied for that.
	lackingSince time.Time
	// suspended is when each autoscaler was suspended first for this generation of the policy.
	suspended  map[string]time.Time
	generation int64
	// restoredAt is when what was suspended was restored, while the policy stays.
	restoredAt time.Time
	// scales of the target that others wrote.
	scales scaleHistory
}

// refusal is an apply that the API server turned down and that nothing but a change elsewhere can fix.
type refusal struct {
	violation  Violation
	at         time.Time
	generation int64
	// found is what the apply found: see Observed.identity.
	found string
}

// After is the history once the actions were carried out.
func (h History) After(o Observed, actions Actions, result Result) History {
	if o.Reading != nil && o.Subscription() != nil {
		h.target = o.Target.UID
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
	if h.generation != o.Policy.Generation {
		h.generation, h.suspended = o.Policy.Generation, nil
	}
	if result.Suspended {
		h.suspended = noted(h.suspended, actions.Suspend.String(), o.Now)
	}
	if result.Restored {
		h.restoredAt = o.Now
	}
	return h
}

// noted is the times with one more, where it is the first of its name.
func noted(times map[string]time.Time, name string, now time.Time) map[string]time.Time {
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

// recreated says that the target is not the object that the last decision on a reading was about.
func (h History) recreated(uid string) bool {
	return h.target != "" && uid != "" && h.target != uid
}

// standingRefusal is why the API server would refuse our autoscaler again; nil when it may take it.
func (h History) standingRefusal(o Observed) *Violation {
	r := h.refusal
	if r == nil || r.generation != o.Policy.Generation || r.found != identity(o) ||
		o.Now.Sub(r.at) >= retryRefusedEvery {
		return nil
	}
	return &r.violation
}

// identity is what an apply finds: the autoscaler of one actuator or the other, by what does not change with the status
// that is written of it at every sync.
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

// toleranceDue says that it is time to apply an autoscaler anew that lacks the tolerance.
func (h History) toleranceDue(o Observed) bool {
	since := h.lackingSince
	return o.Autoscaler != nil && !ToleranceHonoured(o.Autoscaler) && !since.IsZero() &&
		o.Now.Sub(since) >= retryToleranceEvery
}

func (h History) toleranceLackedSince(o Observed, actions Actions) time.Time {
	switch since := h.lackingSince; {
	case o.Autoscaler == nil || ToleranceHonoured(o.Autoscaler):
		return time.Time{}
	case since.IsZero() || actions.ApplyAnew:
		return o.Now
	default:
		return since
	}
}

// RecentlyDeleted says that KEDA's webhook may still see the HorizontalPodAutoscaler that was deleted a moment ago.
func (o Observed) RecentlyDeleted() bool { return o.Now.Sub(o.History.autoscalerDeletedAt) < settleFor }

// recentlyRestored says that the caches may still show the target without what was restored.
func (h History) recentlyRestored(o Observed) bool { return o.Now.Sub(h.restoredAt) < settleFor }

// suspendedAgain says that something was suspended more than a moment ago, and is back. The tool that writes it, such
// as a GitOps controller, is not fought.
func (h History) suspendedAgain(o Observed, step Suspension) bool {
	since, found := h.suspended[step.String()]
	return found && !step.LeftBehind && h.generation == o.Policy.Generation && o.Now.Sub(since) > settleFor
}
