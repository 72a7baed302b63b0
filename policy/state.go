// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// State is what one decision hands to the next. The zero value is a fresh start.
type State struct {
	// DecidedAt is when the last decision was made, or when the state was resumed; what is learned next counts for the
	// time since.
	DecidedAt time.Time
	// ArrivalRate is the smoothed publish rate in messages per second; nil before the first reading.
	ArrivalRate *float64
	// Capacity is what one busy replica processes; nil until it was seen busy.
	Capacity *LearnedCapacity
	// Recommendations of the stabilization window, oldest first, each larger than all after it.
	Recommendations []Recommendation
}

// LearnedCapacity is what one busy replica processes.
type LearnedCapacity struct {
	MessagesPerSecond float64
	Observations      int32
	LearnedAt         time.Time
}

// Recommendation is a number of replicas that was asked for at a time.
type Recommendation struct {
	At       time.Time
	Replicas int32
}

// Resume returns the state to go on with after a restart or a change of the decision maker: the learned capacity
// comes back from the status, where the first observation weighs no more than the time since the restart, and the
// present number of replicas counts as a fresh recommendation, so that nothing goes down within one stabilization
// window of a restart.
func Resume(status v1alpha1.AutoscalingPolicyStatus, currentReplicas int32, now time.Time) State {
	state := State{DecidedAt: now, Recommendations: []Recommendation{{At: now, Replicas: currentReplicas}}}
	if c := status.Capacity; c != nil {
		if rate := c.MessagesPerSecond.AsApproximateFloat64(); rate > 0 {
			state.Capacity = &LearnedCapacity{
				MessagesPerSecond: rate, Observations: c.Observations, LearnedAt: c.LearnedAt.Time,
			}
		}
	}
	return state
}

// capacityStatus is the part of the state that outlives the process.
func (s State) capacityStatus() *v1alpha1.Capacity {
	if s.Capacity == nil {
		return nil
	}
	return &v1alpha1.Capacity{
		MessagesPerSecond: perSecond(s.Capacity.MessagesPerSecond),
		Observations:      s.Capacity.Observations,
		LearnedAt:         metav1.NewTime(s.Capacity.LearnedAt.Truncate(time.Second)),
	}
}

// perSecond writes a rate with three decimals; rates above 10^12 per second are cut there, far above any topic.
func perSecond(rate float64) resource.Quantity {
	const most = 1e12
	return *resource.NewMilliQuantity(int64(max(0, min(rate, most))*1000), resource.DecimalSI)
}
