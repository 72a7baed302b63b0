// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// Between is the history from begun to before ended, beginning with the state at begun.
func Between(timeline []pods.Sample, begun, ended time.Time) []pods.Sample {
	var state pods.Sample
	var after []pods.Sample
	for _, one := range timeline {
		switch {
		case !one.Time.After(begun):
			state = one
		case one.Time.Before(ended):
			after = append(after, one)
		}
	}
	state.Time = begun
	return append([]pods.Sample{state}, after...)
}

// Usage of replicas over a time.
type Usage struct {
	// Paid is the total running time of all replicas, starts included.
	Paid time.Duration
	// Changes of spec.replicas, and the Most of it.
	Changes, Most int
}

// UsageOf sums up a history that begins with the state at its begin.
func UsageOf(lived []pods.Sample, ended time.Time) Usage {
	var u Usage
	for i, one := range lived {
		until := ended
		if i+1 < len(lived) {
			until = lived[i+1].Time
		}
		u.Paid += time.Duration(one.Started) * until.Sub(one.Time)
		u.Most = max(u.Most, one.Desired)
		if i > 0 && one.Desired != lived[i-1].Desired {
			u.Changes++
		}
	}
	return u
}
