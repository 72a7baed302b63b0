// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// firstPause is how long a confirmed capacity stands before fewer replicas are tried. It doubles with each attempt
	// that fails, to an hour.
	firstPause = 15 * time.Minute
	maxFailed  = 2
	// disprovedDeviations of a count are more than luck.
	disprovedDeviations = 2
)

// probe tries fewer replicas where nothing else can show that they became faster: their busy time is unknown, and
// without a backlog they are never saturated. It plans with a capacity at which fewer are enough. A backlog ends the
// attempt, and what they finish without one disproves the capacity.
func probe(in Input, s State, before *LearnedCapacity, saturated bool) *LearnedCapacity {
	ready, err := in.Reading.Ready.Value()
	if err != nil || before == nil || s.Arrivals == nil {
		return s.Capacity
	}
	after, l := *s.Capacity, newLoad(in, s, ready)
	current := in.CurrentReplicas
	fewer := min(int32(float64(current)/probeStep), replicasFor(l.planned/after.MessagesPerSecond)-1)
	switch {
	case before.Probe > 0 && (saturated || l.excess > 0):
		after.Probe, after.Failed = 0, min(maxFailed, max(0, before.Failed)+1)
	case saturated || l.excess > 0 || in.Now.Sub(after.LearnedAt) < after.pause() || !mayProbe(in, s, fewer) ||
		!l.affords(fewer, after.MessagesPerSecond):
	case after.Probe > 0 && l.needed(in).replicas > current:
		after.Probe = 0 // the load rises
	case l.needed(in).steady > fewer:
		after.Probe = l.capacity * l.planned / (l.utilization * l.cautiousCapacity * float64(fewer)) * (1 + epsilon)
	}
	return &after
}

// mayProbe says that the autoscaler can follow, and that an overload would show: on a Failover subscription one replica
// may have it alone.
func mayProbe(in Input, s State, fewer int32) bool {
	return fewer >= max(1, in.minReplicas()) && in.Reading.Type != backlog.Failover && !s.Plateau.active() &&
		in.Spec.Mode != v1alpha1.ModeRecommend
}

// affords says that messages still meet the objective if so few replicas are too few, and that half of the replicas
// stay.
func (l load) affords(fewer int32, confirmed float64) bool {
	return float64(fewer) >= l.current/2 && (l.planned/(float64(fewer)*confirmed)-1)*l.react <= l.objective
}

// disproved is the capacity after replicas without a backlog finished more than it. They have room, so they are as busy
// as is planned for at most.
func (c *LearnedCapacity) disproved(t Tally, now time.Time) *LearnedCapacity {
	each := t.Messages / t.ReplicaSeconds
	if c == nil || each <= c.MessagesPerSecond*(1+disprovedDeviations/math.Sqrt(t.Messages)) {
		return c
	}
	after := c.observe(each/maxUtilization, max(saturatedVariance, 1/t.Messages), now)
	if after.MessagesPerSecond > c.MessagesPerSecond {
		after.Probe, after.Failed = c.Probe, -1
	}
	return after
}

// pause is how long a confirmed capacity stands.
func (c *LearnedCapacity) pause() time.Duration {
	if c.Failed < 0 {
		return 0
	}
	return firstPause << min(c.Failed, maxFailed)
}

// planned is the capacity to plan with.
func (c *LearnedCapacity) planned() float64 { return max(c.MessagesPerSecond, c.Probe) }
