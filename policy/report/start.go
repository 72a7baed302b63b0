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
		at, found := slices.BinarySearchFunc(o.Reading.Started, id, func(i backlog.StartedInstance, id string) int {
			return cmp.Compare(i.ID, id)
		})
		if !found {
			continue
		}
		connected := o.Reading.Started[at].At
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
