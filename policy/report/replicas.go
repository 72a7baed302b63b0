// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// replicaStart is the median of the starts within backlog.StartedFor, by pods and their first consumers; nil for none.
func replicaStart(o plan.Observed) *v1alpha1.ReplicaStart {
	if o.Target == nil || o.Pods == nil || o.Reading == nil || len(o.Reading.Started) == 0 {
		return nil
	}
	var starts []v1alpha1.ReplicaStart
	for _, pod := range o.Pods.Starts {
		id := o.Target.Component + "#" + strconv.Itoa(int(pod.Instance))
		connected, found := o.Reading.Started[id]
		if !found {
			continue
		}
		total := max(connected.Sub(pod.Created), pod.Running) // the broker has another clock
		// A consumer from before the pod is that of an earlier pod of the same instance.
		if connected.Before(pod.Created) || total > backlog.StartedFor {
			continue
		}
		starts = append(starts, divided(pod, total, connected, o.Reading.Instances.Began[pod.Pod]))
	}
	if len(starts) == 0 {
		return nil
	}
	slices.SortStableFunc(starts, func(a, b v1alpha1.ReplicaStart) int {
		return cmp.Compare(a.TotalSeconds, b.TotalSeconds)
	})
	median := starts[(len(starts)-1)/2]
	median.Replicas = int32(min(len(starts), policy.MostStarts))
	return &median
}

// divided is a start by its phases. The process began at a time that is zero if unknown, and that may be the one of an
// earlier pod.
func divided(pod policy.PodStart, total time.Duration, connected, began time.Time) v1alpha1.ReplicaStart {
	seconds := func(d time.Duration) int32 { return int32(math.Round(d.Seconds())) }
	start := v1alpha1.ReplicaStart{
		MeasuredAt: metav1.NewTime(connected.Truncate(time.Second)), TotalSeconds: seconds(total),
		SchedulingSeconds: seconds(pod.Scheduled), InitContainersSeconds: seconds(pod.Initializing),
		ContainersSeconds: seconds(pod.Running - pod.Scheduled - pod.Initializing),
	}
	program := total - pod.Running
	if began.After(pod.Created) {
		before := min(max(0, began.Sub(pod.Created)-pod.Running), program) // the clock of the pod may be another one
		start.PackageSeconds, program = new(seconds(before)), program-before
	}
	start.ProgramSeconds = seconds(program)
	return start
}

// phase is one of a start, with how to make it shorter.
type phase struct {
	seconds int32
	advice  string
}

// phasesOf are all known phases of a start.
func phasesOf(s v1alpha1.ReplicaStart) []phase {
	all := []phase{
		{
			s.SchedulingSeconds,
			"it waits for a node: keep spare nodes, or raise its priorityClassName",
		},
		{
			s.InitContainersSeconds,
			"its init containers run: put the package into the image, or serve packages nearby",
		},
		{
			s.ContainersSeconds,
			"its images are pulled and its containers created: pull the images on all nodes in advance, or make them smaller",
		},
	}
	program := phase{
		s.ProgramSeconds,
		"its program starts and connects: raise resources.cpu, at least until it consumes (in-place resize)",
	}
	if s.PackageSeconds == nil {
		program.advice += ", or put the package into the image"
		return append(all, program)
	}
	return append(all, program, phase{
		*s.PackageSeconds,
		"its container downloads the package: put the package into the image, or serve packages nearby",
	})
}

// fasterStart is how to make the longest phase shorter, as another sentence; empty while starts are not measured.
func fasterStart(s *v1alpha1.ReplicaStart) string {
	if s == nil {
		return ""
	}
	longest := slices.MaxFunc(phasesOf(*s), func(a, b phase) int { return cmp.Compare(a.seconds, b.seconds) })
	text := func(seconds int32) string { return duration.HumanDuration(time.Duration(seconds) * time.Second) }
	return fmt.Sprintf(". A pod has its first consumer %s after its creation. For %s of these, %s",
		text(s.TotalSeconds), text(longest.seconds), longest.advice)
}

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
		result.RedeliveredMessages = new(int64(math.Round(min(max(0, *s.after-*s.before), math.MaxInt64/2))))
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
	capacity := o.state.Capacity
	if o.Target == nil || o.Target.GracePeriod == nil || capacity == nil || capacity.MessagesPerSecond <= 0 {
		return ""
	}
	const most = 1e9 // does not overflow
	call := time.Duration(min(1/capacity.MessagesPerSecond, most) * float64(time.Second))
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
	switch kind := o.Policy.Spec.ScaleTargetRef.Kind; {
	case v1alpha1.IsWorkload(kind):
		field = "spec.pod"
	case kind == plan.KindFunctionMesh:
		field = "pod" // of the entry
	}
	return fmt.Sprintf("pods that are removed are killed after %.0f s, in the middle of a call of about %s, which "+
		"another replica repeats: set %s.terminationGracePeriodSeconds to %.0f or more", o.Target.GracePeriod.Seconds(),
		duration.HumanDuration(call), field, math.Ceil(callsOfGrace*used.Seconds()))
}
