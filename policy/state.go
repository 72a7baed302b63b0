// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// State is what one decision hands to the next. Nothing in it is ever changed: a decision returns a new one. What takes
// minutes to learn is in the status too, where Resume finds it.
type State struct {
	// DecidedAt is when the last decision was made, or when the state was resumed; what is learned next counts for the
	// time since.
	DecidedAt time.Time
	// Arrivals is nil before the first reading with a rate.
	Arrivals *Arrivals
	// Capacity of one replica; nil until it was seen busy.
	Capacity *LearnedCapacity
	Plateau  Plateau
	// Raised is the last raise, for as long as an autoscaler may take to act on it.
	Raised Recommendation
	// Recommendations and Drains of the stabilization window, oldest first, each larger than all after it: what the arrivals
	// needed, and what the arrivals with the backlog did.
	Recommendations, Drains []Recommendation
}

// Recommendation is a number of replicas at a time.
type Recommendation struct {
	At       time.Time
	Replicas int32
}

const (
	// resumedVariance is what a capacity from a status without an uncertainty is believed to.
	resumedVariance = 0.04
	leastResumed    = 1e-4
	percent         = 100
)

// Resume returns where the last process left off. It holds the present replicas for one stabilization window: what was
// needed before is not known.
func Resume(status v1alpha1.AutoscalingPolicyStatus, currentReplicas int32, now time.Time) State {
	held := []Recommendation{{At: now, Replicas: currentReplicas}}
	state := State{DecidedAt: now, Recommendations: held, Drains: held}
	if c := status.Capacity; c != nil {
		if rate := c.MessagesPerSecond.AsApproximateFloat64(); rate > 0 {
			state.Capacity = &LearnedCapacity{
				MessagesPerSecond: rate, Variance: resumedVariance, Observations: c.Observations, LearnedAt: c.LearnedAt.Time,
			}
			if c.UncertaintyPercent != nil {
				deviation := float64(*c.UncertaintyPercent) / percent
				state.Capacity.Variance = max(leastResumed, deviation*deviation)
			}
			if c.MeasuredBusyPercent != nil {
				state.Capacity.Coverage = float64(*c.MeasuredBusyPercent) / percent
			}
		}
	}
	return state
}

// capacityStatus is what Resume needs of it.
func (s State) capacityStatus() *v1alpha1.Capacity {
	if s.Capacity == nil {
		return nil
	}
	status := &v1alpha1.Capacity{
		MessagesPerSecond:  perSecond(s.Capacity.MessagesPerSecond),
		UncertaintyPercent: s.Capacity.uncertaintyPercent(),
		Observations:       s.Capacity.Observations,
		LearnedAt:          metav1.NewTime(s.Capacity.LearnedAt.Truncate(time.Second)),
	}
	if s.Capacity.Coverage > 0 {
		covered := int32(percent*s.Capacity.Coverage + 0.5)
		status.MeasuredBusyPercent = &covered
	}
	return status
}

// perSecond writes a rate with three decimals.
func perSecond(rate float64) resource.Quantity {
	const most = 1e12
	return *resource.NewMilliQuantity(int64(max(0, min(rate, most))*1000), resource.DecimalSI)
}
