// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import "fmt"

// maxGap is the longest time in seconds that replicas may be unknown.
const maxGap = 10

// Usage describes a contender's replicas, from the start of the load to the end of its watch.
type Usage struct {
	// ReplicaHours count pods that existed.
	ReplicaHours float64 `json:"replicaHours"`
	// ScaleChanges counts changes of spec.replicas, and MostReplicas is its highest value.
	ScaleChanges int `json:"scaleChanges"`
	MostReplicas int `json:"mostReplicas"`
	// RemovedReplicas is the sum of its decreases.
	RemovedReplicas int `json:"removedReplicas"`
	// WakeSeconds are, for each wake, the time from the first message published at zero replicas until spec.replicas was
	// above zero, in whole seconds; absent if replicas were never zero.
	WakeSeconds []float64 `json:"wakeSeconds,omitempty"`
}

// UsageOf sums up samples until end, in seconds. A value holds until the next known one.
func UsageOf(samples []Sample, end float64) (Usage, error) {
	const hour = 3600
	var u Usage
	var last *Sample
	known, problem := 0.0, "no sample"
	for i := range samples {
		s := &samples[i]
		if s.SpecReplicas == nil || s.Pods == nil {
			problem = s.Problem
			continue
		}
		if s.Seconds-known > maxGap {
			break
		}
		u.MostReplicas = max(u.MostReplicas, *s.SpecReplicas)
		if last != nil {
			u.ReplicaHours += float64(*last.Pods) * (s.Seconds - last.Seconds) / hour
			if *s.SpecReplicas != *last.SpecReplicas {
				u.ScaleChanges++
				u.RemovedReplicas += max(0, *last.SpecReplicas-*s.SpecReplicas)
			}
		}
		last, known = s, s.Seconds
	}
	if last == nil || end-known > maxGap {
		return Usage{}, fmt.Errorf("replicas are unknown for more than %d s after %.0f s: %s", maxGap, known, problem)
	}
	u.ReplicaHours += float64(*last.Pods) * max(0, end-last.Seconds) / hour
	u.WakeSeconds = wakes(samples)
	return u, nil
}

func wakes(samples []Sample) (seconds []float64) {
	var idle, message *Sample // the first sample at zero replicas, and the first after it with a message
	for i := range samples {
		s := &samples[i]
		if s.SpecReplicas == nil {
			continue
		}
		if idle != nil && message == nil && s.Published > idle.Published {
			message = s
		}
		switch {
		case *s.SpecReplicas == 0 && idle == nil:
			idle = s
		case *s.SpecReplicas > 0:
			if message != nil {
				seconds = append(seconds, s.Seconds-message.Seconds)
			}
			idle, message = nil, nil
		}
	}
	return seconds
}
