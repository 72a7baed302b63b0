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
	// created is in Unix seconds.
	created int64
	// The rest is in seconds since then; running is 0 if unknown.
	scheduled, initialized, running int16
}

// newPodStart is zero until all containers run, and once one was restarted: then its first start is unknown.
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
	scheduled, initialized := becameTrue(pod, corev1.PodScheduled), becameTrue(pod, corev1.PodInitialized)
	created := pod.CreationTimestamp.Time
	if scheduled.IsZero() || initialized.IsZero() || !running.After(created) ||
		running.Sub(created) > math.MaxInt16*time.Second {
		return podStart{}
	}
	start := podStart{created: created.Unix(), running: int16(running.Sub(created).Seconds())}
	// The API server, the scheduler and the kubelet may have different clocks.
	between := func(least int16, at time.Time) int16 {
		return int16(min(max(float64(least), at.Sub(created).Seconds()), float64(start.running)))
	}
	start.scheduled = between(0, scheduled)
	start.initialized = between(start.scheduled, initialized)
	return start
}

// becameTrue is when a condition of the pod became true; zero if it is not.
func becameTrue(pod *corev1.Pod, condition corev1.PodConditionType) time.Time {
	if c := conditionOf(pod, condition); c != nil && c.Status == corev1.ConditionTrue {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// started is how the pod of an instance started. The name of the pod ends with the number of the instance.
func (p *instancePod) started() (start policy.PodStart, ran bool) {
	number, err := strconv.ParseInt(p.name[strings.LastIndexByte(p.name, '-')+1:], 10, 32)
	if err != nil || p.start.running == 0 {
		return policy.PodStart{}, false
	}
	return policy.PodStart{
		Instance: int32(number), Created: time.Unix(p.start.created, 0),
		Scheduled:   time.Duration(p.start.scheduled) * time.Second,
		Initialized: time.Duration(p.start.initialized) * time.Second,
		Running:     time.Duration(p.start.running) * time.Second,
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
