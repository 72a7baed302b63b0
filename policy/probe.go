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
	// inHandPolls are remembered of what replicas have in hand. A turnover that is quicker times what it was when fewer
	// replicas were too few does not wait: they may be enough now.
	inHandPolls, quicker = 12, 1.1
)

// InHand sums up polls without a backlog since replicas last came or went: messages that were sent to replicas and are
// not acknowledged, and what they finish per second. The quotient is how long a message is with one (Little's law).
type InHand struct {
	Messages  float64 `json:"m,omitempty"`
	PerSecond float64 `json:"rate,omitempty"`
	Replicas  float64 `json:"n,omitempty"`
}

// observe adds a poll. It forgets the others where receive queues are full or replicas came or went, but for those of
// an attempt, which hold more. Busy time tells more than it does.
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

// turnover is what is finished for each message in hand, as a share of the capacity: 1 where a message is with a
// replica for no longer than its call. The count of messages may be so many deviations too low.
func (h InHand) turnover(c *LearnedCapacity, deviations float64) float64 {
	most := h.Messages + 1 // a message may be missed by all polls
	return h.PerSecond / (most + deviations*math.Sqrt(most)) / c.MessagesPerSecond
}

// spare is the share of their capacity that replicas have left, as much as is planned for at least. The less, the more
// messages wait for the one before.
func (h InHand) spare(c *LearnedCapacity) float64 {
	return max(1-maxUtilization, 1-h.PerSecond/(h.Replicas*c.MessagesPerSecond))
}

// quicker says that messages are with replicas for clearly shorter than at the last attempt that failed, by more than
// the change of the load per replica explains.
func (h InHand) quicker(c *LearnedCapacity) bool {
	if c.Turnover == 0 {
		return false
	}
	return h.turnover(c, disprovedDeviations)*min(1, c.Spare/h.spare(c)) > quicker*c.Turnover
}

// reference is the turnover, 0 if too few messages were seen to compare others with, and the spare capacity.
func (h InHand) reference(c *LearnedCapacity) (turnover, spare float64) {
	if h.Messages < enoughMessages || h.Replicas == 0 {
		return 0, 0
	}
	return h.turnover(c, 0), h.spare(c)
}

// probe tries fewer replicas where nothing else can show that they became faster: their busy time is unknown, and
// without a backlog they are never saturated. It plans with a capacity at which fewer are enough. A backlog ends the
// attempt, and what they finish without one disproves the capacity.
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

// fewer replicas to try, 0 for none: as few as still meet the objective if the confirmed capacity is right, and half at
// least, if they are known to be faster; else one step.
func (l load) fewer(confirmed float64, faster bool) int32 {
	least := replicasFor(max(l.current/2, l.planned/(confirmed*(1+l.objective/l.react))))
	fewer := int32(l.current / probeStep)
	if faster {
		fewer = least
	}
	if fewer = min(fewer, replicasFor(l.planned/confirmed)-1); fewer < least {
		return 0
	}
	return fewer
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

// pause is how long a confirmed capacity stands: not at all after an attempt that was not too few, and where messages
// are with replicas for clearly shorter than at the last one that was.
func (c *LearnedCapacity) pause(h InHand) time.Duration {
	if c.Failed < 0 || h.quicker(c) {
		return 0
	}
	return firstPause << min(c.Failed, maxFailed)
}

// planned is the capacity to plan with.
func (c *LearnedCapacity) planned() float64 { return max(c.MessagesPerSecond, c.Probe) }
