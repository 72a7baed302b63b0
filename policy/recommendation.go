// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// recommendation is what one strategy recommends.
type recommendation struct {
	strategy v1alpha1.StrategyType
	replicas int32
	// steady and drain bound a scale-down: what the arrivals need, and what the arrivals and the backlog need.
	steady, drain int32
	equation      string
	terms         []Term
	// overloaded is true if one replica has too much load although the total is within the capacity of all.
	overloaded bool
	// foresees is true if a pulse that is about to begin needs replicas.
	foresees bool
	cappedBy string
	// unknown is true if the strategy could not compute a number.
	unknown bool
	hold    *Hold
}

// needed is the number that a scale-down keeps.
func (a recommendation) needed() int32 { return max(a.steady, a.drain) }

// recommend returns a recommendation with one number for everything.
func recommend(replicas int32, equation string) recommendation {
	return recommendation{replicas: replicas, steady: replicas, drain: replicas, equation: equation}
}

// holdCurrent returns a recommendation to keep the current replicas.
func holdCurrent(in Input, reason, message string) recommendation {
	a := recommend(in.CurrentReplicas, "")
	a.unknown, a.hold = true, &Hold{Reason: reason, Message: message}
	return a
}

// withinPartitions limits a recommendation to the replicas that can have a partition: more would be idle.
func (a recommendation) withinPartitions(in Input) recommendation {
	most, known := UsefulReplicas(in)
	if !known || a.unknown {
		return a
	}
	if a.replicas > max(most, in.CurrentReplicas) {
		a.cappedBy = CappedByPartitions
	}
	a.replicas, a.steady, a.drain = min(a.replicas, most), min(a.steady, most), min(a.drain, most)
	return a
}

// withinMessages limits a scale-up to one replica for each message that is in the backlog or arrives before new
// replicas consume. With long calls more replicas would have no message.
func (a recommendation) withinMessages(messages float64) recommendation {
	most := max(1, replicasFor(messages))
	if a.unknown || a.replicas <= most {
		return a
	}
	a.equation += fmt.Sprintf(", and %d have a message", most)
	a.replicas = most
	return a
}

// epsilon absorbs rounding errors of floating point: 7.0000001 replicas are 7.
const epsilon = 1e-6

// replicasFor rounds a need up to whole replicas.
func replicasFor(needed float64) int32 {
	return int32(min(math.Ceil(max(0, needed)-epsilon), math.MaxInt32/2))
}

// short formats a number for people: three significant digits, whole from 1000 on.
func short(value float64) string {
	if value >= 1000 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}
