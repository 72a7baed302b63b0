// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// leaveWithin is how long consumers of removed replicas may take to leave: a grace period of usually 30 s.
const leaveWithin = 2 * time.Minute

// scaleDown is the last decrease of the target's replicas; zero before the first.
type scaleDown struct {
	at      time.Time
	removed int32
	// seen is the number of redelivered messages at the last reconcile, before the one before the decrease, and after the
	// one within leaveWithin; nil while it is unknown.
	seen, before, after *float64
}

// next is the state after another reconcile, with the replicas at the one before; nil before the first.
func (s scaleDown) next(o plan.Observed, replicas *int32) scaleDown {
	if current := *o.Target.Replicas; replicas != nil && current < *replicas {
		s = scaleDown{at: o.Now, removed: *replicas - current, seen: s.seen, before: s.seen}
	}
	if o.Reading == nil {
		return s
	}
	if redelivered, err := o.Reading.Redelivered.Value(); err == nil {
		s.seen = &redelivered
	}
	if o.Now.Sub(s.at) <= leaveWithin {
		s.after = s.seen
	}
	return s
}

// status is nil before the first scale-down.
func (s scaleDown) status() *v1alpha1.ScaleDownResult {
	if s.removed == 0 {
		return nil
	}
	result := &v1alpha1.ScaleDownResult{Time: metav1.NewTime(s.at.Truncate(time.Second)), RemovedReplicas: s.removed}
	if s.before != nil && s.after != nil {
		redelivered := int64(math.Round(min(max(0, *s.after-*s.before), math.MaxInt64/2)))
		result.RedeliveredMessages = &redelivered
	}
	return result
}

const (
	// longCall is the shortest call that is worth a warning if it is interrupted.
	longCall = time.Second
	// enoughGrace is how much longer than a call a grace period is that counts as long enough again, and callsOfGrace how
	// many calls the recommended one has: calls differ.
	enoughGrace, callsOfGrace = 1.25, 2
)

// interruptsCalls describes a grace period that is shorter than a call, so that removed replicas are killed in it;
// empty for none. A replica takes at least the inverse of its capacity for a message.
func interruptsCalls(o outcome) string {
	if o.Target == nil || o.Target.GracePeriod == nil || o.capacity == nil || o.capacity.MessagesPerSecond <= 0 {
		return ""
	}
	const most = 1e9 // does not overflow
	call := time.Duration(min(1/o.capacity.MessagesPerSecond, most) * float64(time.Second))
	used := call
	if limit := o.Target.MostUsefulGrace; limit > 0 {
		used = min(call, limit)
	}
	needed, last := used, meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionScalesWithoutRestart)
	if last != nil && last.Reason == v1alpha1.ReasonGracePeriodTooShort {
		needed = time.Duration(enoughGrace * float64(used))
	}
	if call < longCall || *o.Target.GracePeriod >= needed {
		return ""
	}
	field := "spec.template.spec"
	switch o.Policy.Spec.ScaleTargetRef.Kind {
	case "Function", "Sink", "Source":
		field = "spec.pod"
	case plan.KindFunctionMesh:
		field = "pod" // of the entry
	}
	return fmt.Sprintf("pods that are removed are killed after %.0f s, in the middle of a call of about %s, which "+
		"another replica repeats: set %s.terminationGracePeriodSeconds to %.0f or more", o.Target.GracePeriod.Seconds(),
		duration.HumanDuration(call), field, math.Ceil(callsOfGrace*used.Seconds()))
}
