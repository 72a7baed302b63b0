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
