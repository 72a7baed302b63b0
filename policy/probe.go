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
	// firstPause is how long a confirmed capacity is used before an attempt with fewer replicas. It doubles with each
	// failed attempt, up to an hour.
	firstPause = 15 * time.Minute
	maxFailed  = 2
	// disprovedDeviations of a count exceed random variation.
	disprovedDeviations = 2
)

// probe tries fewer replicas where nothing else can show that they became faster: their busy time is unknown, and
// without a backlog they are never saturated. It plans with a capacity at which fewer replicas are enough. A backlog
// ends the attempt, and the rate that they finish without a backlog disproves the capacity.
func probe(in Input, s State, before *LearnedCapacity, saturated bool) *LearnedCapacity {
	ready, err := in.Reading.Ready.Value()
	if err != nil || before == nil || s.Arrivals == nil {
		return s.Capacity
	}
	after, l := *s.Capacity, newLoad(in, s, ready)
	pause := after.pause()
	fewer := l.fewer(after.MessagesPerSecond, pause == 0)
	switch {
	case before.Probe > 0 && (saturated || l.excess > 0):
		after.Probe, after.Failed = 0, min(maxFailed, max(0, before.Failed)+1)
	case saturated || l.excess > 0 || in.Now.Sub(after.LearnedAt) < pause || !mayProbe(in, s, fewer):
	case after.Probe > 0 && l.needed(in).replicas > in.CurrentReplicas:
		after.Probe = 0 // the load rises
	case l.needed(in).steady > fewer:
		after.Probe = l.arriving / (l.utilization * float64(fewer)) * (1 + epsilon)
	}
	return &after
}

// mayProbe reports whether the autoscaler can follow and an overload would show. On a Failover subscription one replica
// may be overloaded alone.
func mayProbe(in Input, s State, fewer int32) bool {
	return fewer >= max(1, in.minReplicas()) && in.Reading.Type != backlog.Failover && s.Plateau.Stage == "" &&
		in.Spec.Mode != v1alpha1.ModeRecommend && in.Frozen == nil && !ScaleDownDisabled(in.Spec) &&
		!ScaleUpDisabled(in.Spec)
}

// fewer is the number of replicas to try, 0 for none. If replicas are known to be faster it is the smallest number that
// meets the objective with the confirmed capacity, and at least half; otherwise one step.
func (l load) fewer(confirmed float64, faster bool) int32 {
	least := replicasFor(max(l.current/2, l.arriving/(confirmed*(1+l.objective/l.react))))
	fewer := int32(l.current / probeStep)
	if faster {
		fewer = least
	}
	if fewer = min(fewer, replicasFor(l.arriving/confirmed)-1); fewer < least {
		return 0
	}
	return fewer
}

// disproved is the capacity after replicas without a backlog finished more than it. They are at most as busy as is
// planned for.
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

// pause is how long a confirmed capacity is used. There is no pause after an attempt that had enough replicas.
func (c *LearnedCapacity) pause() time.Duration {
	if c.Failed < 0 {
		return 0
	}
	return firstPause << min(c.Failed, maxFailed)
}

func (c *LearnedCapacity) planned() float64 { return max(c.MessagesPerSecond, c.Probe) }
