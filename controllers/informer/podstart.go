// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// podStart is how a pod started, in 16 bytes.
type podStart struct {
	// created is in Unix seconds; 0 if the start is unknown.
	created int64
	// scheduled and running are in seconds since then, and initializing is how long the init containers ran, in seconds.
	scheduled, initializing, running int16
}

// newPodStart is zero until all containers run, and once one was restarted: then its first start is unknown. The time
// between init containers is that of images: that of condition Initialized has both.
func newPodStart(pod *corev1.Pod) podStart {
	var running time.Time
	for i := range pod.Status.ContainerStatuses {
		c := &pod.Status.ContainerStatuses[i]
		if c.State.Running == nil || c.State.Running.StartedAt.IsZero() || c.RestartCount > 0 {
			return podStart{}
		}
		if started := c.State.Running.StartedAt.Time; started.After(running) {
			running = started
		}
	}
	var initializing time.Duration
	for i := range pod.Status.InitContainerStatuses {
		c := &pod.Status.InitContainerStatuses[i]
		if c.RestartCount > 0 {
			return podStart{}
		}
		if ended := c.State.Terminated; ended != nil { // a sidecar runs on
			initializing += ended.FinishedAt.Sub(ended.StartedAt.Time)
		}
	}
	scheduled, created := conditionOf(pod, corev1.PodScheduled), pod.CreationTimestamp.Time
	if scheduled == nil || scheduled.Status != corev1.ConditionTrue || running.Before(created) ||
		running.Sub(created) > math.MaxInt16*time.Second {
		return podStart{}
	}
	start := podStart{created: created.Unix(), running: int16(running.Sub(created).Seconds())}
	// The API server, the scheduler and the kubelet may have different clocks.
	within := func(d time.Duration, most int16) int16 { return int16(min(max(0, d.Seconds()), float64(most))) }
	start.scheduled = within(scheduled.LastTransitionTime.Sub(created), start.running)
	start.initializing = within(initializing, start.running-start.scheduled)
	return start
}

// started is how the pod of an instance started. The name of the pod ends with the number of the instance.
func (p *instancePod) started() (start policy.PodStart, ran bool) {
	number, err := strconv.ParseInt(p.name[strings.LastIndexByte(p.name, '-')+1:], 10, 32)
	if err != nil || p.start.created == 0 {
		return policy.PodStart{}, false
	}
	return policy.PodStart{
		Pod: p.name, Instance: int32(number), Created: time.Unix(p.start.created, 0),
		Scheduled:    time.Duration(p.start.scheduled) * time.Second,
		Initializing: time.Duration(p.start.initializing) * time.Second,
		Running:      time.Duration(p.start.running) * time.Second,
	}, true
}

// withStart adds a start to the newest ones.
func withStart(starts []policy.PodStart, one policy.PodStart) []policy.PodStart {
	place, _ := slices.BinarySearchFunc(starts, one, newestFirst)
	if place == policy.MostStarts {
		return starts
	}
	return slices.Insert(starts[:min(len(starts), policy.MostStarts-1)], place, one)
}

func newestFirst(a, b policy.PodStart) int {
	return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(a.Instance, b.Instance))
}
