// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
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
func (f *failure) same(p *v1alpha1.AutoscalingPolicy, of string) bool {
	return f != nil && f.of == of && f.generation == p.Generation
}

// pausing is why it failed, while it is too early to try again; nil otherwise.
func (f *failure) pausing(s Subject, of string) *Violation {
	if !f.same(s.Policy, of) || s.Now.Sub(f.at) >= f.wait {
		return nil
	}
	return &f.problem
}

// recreated reports whether the target is another object than at the last decision with a reading.
func (h History) recreated(uid string) bool {
	return h.target != "" && uid != "" && h.target != uid
}

// toleranceDue reports whether it is time to reapply an autoscaler that lacks the tolerance.
func (h History) toleranceDue(live *autoscalingv2.HorizontalPodAutoscaler, now time.Time) bool {
	since := h.lackingSince
	return live != nil && !ToleranceHonoured(live) && !since.IsZero() && now.Sub(since) >= retryToleranceEvery
}

// RecentlyDeleted reports whether KEDA's webhook may still see the deleted HorizontalPodAutoscaler.
func (h History) RecentlyDeleted(now time.Time) bool {
	return now.Sub(h.autoscalerDeletedAt) < cacheLag
}

// recentlyRestored reports whether the caches may not show the restored objects yet.
func (h History) recentlyRestored(now time.Time) bool { return now.Sub(h.restoredAt) < cacheLag }

// suspendedBefore reports whether an autoscaler of this target was suspended for this generation of the policy, longer
// ago than caches lag.
func (h History) suspendedBefore(s Subject, name string) bool {
	since, found := h.suspended[name]
	return found && h.generation == s.Policy.Generation && !h.recreated(s.Target.UID) && s.Now.Sub(since) > cacheLag
}

// scaleHistory is the history of the target's replicas, to detect manual scales.
type scaleHistory struct {
	// replicas is the last explained number; nil before the first.
	replicas *int32
	// instead is the number that the next decision continues from while the target has replicas; nil for replicas itself.
	instead *int32
	// written is the number that the controller wrote last and has not seen since; nil for none. writtenAt is when it
	// first wrote it.
	written   *int32
	writtenAt time.Time
	// failed is why the last write failed; nil if it did not.
	failed error
	// creates is true if it wrote that number to have a child created.
	creates bool
	// unnamed is true if a change from replicas was seen and its writer is not looked up yet.
	unnamed bool
	// lookedUpAt is when the writer was last looked up.
	lookedUpAt time.Time
	// last is the last manual scale; nil for none.
	last   *ManualScale
	resets resets
}

// wrote reports whether the controller wrote the number of replicas.
func (s scaleHistory) wrote(replicas int32) bool {
	return s.written != nil && *s.written == replicas
}

// at reports whether the last explained number is this one.
func (s scaleHistory) at(replicas int32) bool { return s.replicas != nil && *s.replicas == replicas }

// reverted reports whether the target still has the number that the controller overwrote, for longer than a cache may
// lag behind the write: another writer is faster than the watch.
func (s scaleHistory) reverted(replicas int32, now time.Time) bool {
	return s.written != nil && s.at(replicas) && !s.wrote(replicas) && now.Sub(s.writtenAt) >= cacheLag
}
