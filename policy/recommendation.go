// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// recommendation is what one strategy asks for.
type recommendation struct {
	strategy v1alpha1.StrategyType
	replicas int32
	// steady and drain are what to go down to no further than: what the arrivals need, and what they and the backlog do.
	steady, drain int32
	equation      string
	terms         []Term
	// overloaded says that one replica has more to do than it can although the sum is within what all can.
	overloaded bool
	cappedBy   string
	// unknown says that nothing could be computed.
	unknown bool
	hold    *Hold
}

// recommend is a recommendation with one number for everything.
func recommend(replicas int32, equation string) recommendation {
	return recommendation{replicas: replicas, steady: replicas, drain: replicas, equation: equation}
}

// holdCurrent is a recommendation to keep the current replicas.
func holdCurrent(in Input, reason, message string) recommendation {
	a := recommend(in.CurrentReplicas, "")
	a.unknown, a.hold = true, &Hold{Reason: reason, Message: message}
	return a
}

// withinPartitions limits a recommendation to the replicas that can have a partition: others stand by.
func (a recommendation) withinPartitions(in Input) recommendation {
	most, known := useful(in)
	if !known || a.unknown {
		return a
	}
	if a.replicas > max(most, in.CurrentReplicas) {
		a.cappedBy = CappedByPartitions
	}
	a.replicas, a.steady, a.drain = min(a.replicas, most), min(a.steady, most), min(a.drain, most)
	return a
}

// hair is what floating point may add: 7.0000001 replicas come from that, not from load.
const hair = 1e-6

// replicasFor is the whole number of replicas that a need asks for.
func replicasFor(needed float64) int32 {
	return int32(min(math.Ceil(max(0, needed)-hair), math.MaxInt32/2))
}

// short writes a number for people: three significant digits, whole from 1000 on.
func short(value float64) string {
	if value >= 1000 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}
