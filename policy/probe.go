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
	// inHandPolls limits the polls that InHand sums up. quicker is the factor by which a turnover has to exceed that of
	// the last failed attempt to end the pause: the smaller number may be enough now.
	inHandPolls, quicker = 12, 1.1
)

// InHand sums up polls without a backlog since the number of replicas last changed: messages that were sent to replicas
// and are not acknowledged, and the rate of finished messages. The quotient is how long a message is with a replica
// (Little's law).
type InHand struct {
	Messages  float64 `json:"m,omitempty"`
	PerSecond float64 `json:"rate,omitempty"`
	Replicas  float64 `json:"n,omitempty"`
}

// observe adds a poll. During an attempt, which has more in hand, the sum stays. It is discarded if the replicas
// changed, if receive queues are full, or if busy time is known, which is more exact.
func (h InHand) observe(r backlog.Reading, steady, saturated, attempt bool) InHand {
	messages, err := r.Unacked.Value()
	processed, unknown := r.ProcessRate.Value()
	replicas, _ := r.Consumers.Value() // known if they are steady
	_, timed := busyShare(r)
	switch {
	case attempt:
		return h
	case !steady || saturated || timed || err != nil || unknown != nil:
		return InHand{}
	}
	const kept = 1 - 1.0/inHandPolls
	return InHand{
		Messages: kept*h.Messages + messages, PerSecond: kept*h.PerSecond + processed, Replicas: kept*h.Replicas + replicas,
	}
}

// turnover is the finished rate for each message in hand, as a share of the capacity: 1 if a message is with a replica
// only for its call. The count of messages may be this number of deviations too low.
func (h InHand) turnover(c *LearnedCapacity, deviations float64) float64 {
	most := h.Messages + 1 // a message may be missed by all polls
	return h.PerSecond / (most + deviations*math.Sqrt(most)) / c.MessagesPerSecond
}

// spare is the share of their capacity that replicas have left, at least as much as is planned for. With less spare
// capacity more messages queue.
func (h InHand) spare(c *LearnedCapacity) float64 {
	return max(1-maxUtilization, 1-h.PerSecond/(h.Replicas*c.MessagesPerSecond))
}

// quicker reports whether messages are with replicas for clearly less time than at the last failed attempt, beyond the
// effect of the load per replica.
func (h InHand) quicker(c *LearnedCapacity) bool {
	if c.Turnover == 0 {
		return false
	}
	return h.turnover(c, disprovedDeviations)*min(1, c.Spare/h.spare(c)) > quicker*c.Turnover
}

// reference is the turnover and the spare capacity to compare later ones with. The turnover is 0 if there were too few
// messages.
func (h InHand) reference(c *LearnedCapacity) (turnover, spare float64) {
	if h.Messages < enoughMessages || h.Replicas == 0 {
		return 0, 0
	}
	return h.turnover(c, 0), h.spare(c)
}

// probe tries fewer replicas where nothing else can show that they became faster: their busy time is unknown, and
// without a backlog they are never saturated. It plans with a capacity at which fewer replicas are enough. A backlog
// ends the attempt, and the rate that they finish without a backlog disproves the capacity.
func probe(in Input, s State, before *LearnedCapacity, saturated bool) *LearnedCapacity {
	ready, err := in.Reading.Ready.Value()
	if err != nil || before == nil || s.Arrivals == nil {
		return s.Capacity
	}
	after, l := *s.Capacity, newLoad(in, s, ready)
	pause := after.pause(s.InHand)
	fewer := l.fewer(after.MessagesPerSecond, pause == 0)
	switch {
	case before.Probe > 0 && (saturated || l.excess > 0):
		after.Probe, after.Failed = 0, min(maxFailed, max(0, before.Failed)+1)
		after.Turnover, after.Spare = s.InHand.reference(before)
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

// pause is how long a confirmed capacity is used. There is no pause after an attempt that had enough replicas, and
// where messages are with replicas for clearly less time than at the last attempt that did not.
func (c *LearnedCapacity) pause(h InHand) time.Duration {
	if c.Failed < 0 || h.quicker(c) {
		return 0
	}
	return firstPause << min(c.Failed, maxFailed)
}

// planned is the capacity to plan with.
func (c *LearnedCapacity) planned() float64 { return max(c.MessagesPerSecond, c.Probe) }
