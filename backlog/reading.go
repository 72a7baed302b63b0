// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Reading is the current state of a subscription, summed over its topics and partitions. Messages are messages, not
// entries; rates are messages per second over Window. If Coverage is not whole, all sums are lower bounds.
type Reading struct {
	// Coverage is the known part of the topics.
	Coverage Coverage
	// At is when the oldest part was measured.
	At time.Time
	// Type of the subscription; NoType if there was no consumer since the topics were loaded.
	Type SubscriptionType
	// OtherType is a type that some topics or partitions have instead of Type; empty if all that were consumed agree.
	OtherType SubscriptionType

	// Total is the whole backlog: ready, delayed and unacknowledged messages.
	Total Measurement
	// ExactAt is when Total was last counted exactly, with nothing published and the same backlog since; zero if a part of
	// it is from the broker's quick count, which may drift.
	ExactAt time.Time
	// Ready is Total without messages that are still delayed, as far as Pulsar reports: it learns of a delay when it reads
	// the message for a consumer, and stops counting down when the last consumer has left. So without a consumer the whole
	// backlog counts as ready: an unnecessary replica is better than a Function that never starts.
	Ready Measurement
	// Delayed messages, as far as the dispatcher has read; unknown while there is a backlog and no consumer.
	Delayed Measurement
	// Unacked messages are with a consumer; unknown for Exclusive and Failover, which do not count them.
	Unacked Measurement
	// Undispatched is Ready without Unacked: messages that a new consumer could receive.
	Undispatched Measurement

	// InReplay messages were read by the dispatcher and wait for a consumer with permits: negatively acknowledged ones,
	// and those for which busy consumers had no permits. Estimated from entries.
	InReplay Measurement
	// Bytes of the whole backlog; ErrNotRequested unless the Subscription requests them.
	Bytes Measurement
	// OldestAge is the age in seconds, at OldestAt, of the oldest message of the backlog; 0 without a backlog. It is
	// measured less often than the rest, so it has its own time and staleness.
	OldestAge Measurement
	OldestAt  time.Time

	// Unconfirmed is the backlog in entries of a newer, implausible answer, or 1 after a message that a broker pushed. It
	// may only wake one replica. 0 for none.
	Unconfirmed float64

	// GrowthRate is the growth of Total over Window by the current mean batch, in messages per second; negative if it
	// fell.
	GrowthRate Measurement
	// PublishRate is the arrival rate.
	PublishRate Measurement
	// LatestPublishRate is PublishRate over the newest answers that are at least 2 s apart, LatestWindow. After a load
	// step it has the new rate while Window still includes the old one; it is noisier.
	LatestPublishRate Measurement
	LatestWindow      time.Duration
	// DeliveryRate is the rate of messages sent to consumers, redeliveries included.
	DeliveryRate Measurement
	// ProcessRate is the rate at which consumers finish messages: deliveries less the growth of what they hold. Messages
	// of consumers that left are not finished, so the time in which some left is excluded.
	ProcessRate Measurement
	// Window is the time that the rates were measured over; 0 while they are unknown.
	Window time.Duration
	// LeastReady and LeastUndispatched are the minima within Window: above 0, there was a backlog throughout.
	LeastReady        Measurement
	LeastUndispatched Measurement

	// Consumers is the number of connected replicas, each counted once for all its topics and partitions, including
	// standby ones of Failover and Exclusive. ErrNotRequested until the first full answer. Each fetch is full while there
	// is a backlog, and otherwise one a minute, so for an idle subscription it may be older than At.
	Consumers Measurement
	// Holding is the number of these consumers that hold unacknowledged messages; unknown where Unacked is, and where
	// consumers cannot be told apart.
	Holding Measurement
	// Redelivered messages were not acknowledged by consumers that left, since the subscription is tracked: scale-downs,
	// restarts and lost connections. Unknown where Unacked is, and while there are too many consumers to follow each.
	Redelivered Measurement
	// SteadyConsumers is true if the same consumers were connected throughout Window.
	SteadyConsumers bool
	// Components are the functions that the consumers name as theirs (tenant/namespace/name), sorted and distinct. Several
	// functions share the subscription's messages.
	Components []string
	// Started are the instances, such as t/n/name#3, with a first consumer within StartedFor, and its time, as far as
	// consumers can be told apart.
	Started map[string]time.Time
	// Blocked is true if dispatch has stopped for some topic because of too many unacknowledged messages.
	Blocked bool
	// Throttled is true if a rate limit delayed dispatch within Window: more replicas would get no more messages.
	Throttled bool
	// Draining is true if Key_Shared hashes are blocked by their former consumer after a consumer joined or left.
	Draining bool

	// Partitions is the number over all topics, where a topic that is not partitioned counts as one. With Failover only
	// this number of replicas can have work.
	Partitions int
	// UnreadPartitions have a backlog and no consumer, while others have one: a client finds added partitions up to a
	// minute late. UnreadMessages is their ready backlog. ErrNotRequested until the first full answer.
	UnreadPartitions, UnreadMessages Measurement

	// Instances has the counters of the instances.
	Instances InstancesReading

	// Trouble is why newer answers failed; nil if the last fetch succeeded. At gives the age of the reading.
	Trouble error

	// PushRefused is why brokers refuse to report the first message of a topic, which is polled; nil if they do not, and
	// while no message wakes replicas.
	PushRefused error

	// consumers is the source of Consumers, Components and the unread partitions.
	consumers consumers
}

// sums are the measurements that add up over topics, and that a part is a lower bound of. GrowthRate, which may be
// negative, is bounded by none.
func (r *Reading) sums() [14]*Measurement {
	return [...]*Measurement{
		&r.Total, &r.Ready, &r.Delayed, &r.Unacked, &r.Undispatched, &r.InReplay, &r.Bytes, &r.PublishRate,
		&r.LatestPublishRate, &r.DeliveryRate, &r.ProcessRate, &r.LeastReady, &r.LeastUndispatched, &r.Redelivered,
	}
}

// plus sums two readings of one subscription on different topics.
func (r Reading) plus(other Reading) Reading {
	sum := r
	others := other.sums()
	for i, m := range sum.sums() {
		*m = m.plus(*others[i])
	}
	sum.OldestAge, sum.OldestAt = r.oldest(other)
	sum.Unconfirmed += other.Unconfirmed
	sum.GrowthRate = r.GrowthRate.plus(other.GrowthRate)
	sum.LatestWindow = max(r.LatestWindow, other.LatestWindow)
	sum.Window = max(r.Window, other.Window)
	sum.SteadyConsumers = r.SteadyConsumers && other.SteadyConsumers
	sum.Blocked = r.Blocked || other.Blocked
	sum.Throttled = r.Throttled || other.Throttled
	sum.Draining = r.Draining || other.Draining
	sum.Partitions += other.Partitions
	if other.At.Before(r.At) {
		sum.At = other.At
	}
	if other.ExactAt.Before(r.ExactAt) {
		sum.ExactAt = other.ExactAt
	}
	one, another := r.Type.with(other.Type)
	sum.Type, sum.OtherType = one, cmp.Or(another, r.OtherType, other.OtherType)
	sum.PushRefused = cmp.Or(r.PushRefused, other.PushRefused)
	if r.Trouble == nil {
		sum.Trouble = other.Trouble
	}
	sum.consumers = r.consumers.plus(other.consumers)
	return sum
}

// oldest is the age of the message that was published first, and the time of this age. If one of the ages is unknown,
// so is the result, at the earlier time.
func (r Reading) oldest(other Reading) (age Measurement, at time.Time) {
	first, second := r, other
	if other.OldestAt.Before(r.OldestAt) {
		first, second = other, r
	}
	one, err := first.OldestAge.Value()
	two, unknown := second.OldestAge.Value()
	switch apart := second.OldestAt.Sub(first.OldestAt).Seconds(); {
	case err != nil, unknown != nil:
		return first.OldestAge.larger(second.OldestAge), first.OldestAt
	case two > 0 && (one == 0 || two-one > apart):
		return second.OldestAge, second.OldestAt
	default:
		return first.OldestAge, first.OldestAt
	}
}

// PartitionReading is the state of one partition of a subscription.
type PartitionReading struct {
	Topic string
	// Index of the partition, or NotPartitioned.
	Index int
	// Ready messages.
	Ready Measurement
	// PublishRate and ProcessRate in messages per second over the subscription's Window.
	PublishRate, ProcessRate Measurement
	// Consumers connected; ErrNotRequested until the first full answer. On a partition without the subscription all but
	// PublishRate are ErrSubscriptionNotFound.
	Consumers Measurement
}

// InstancesReading has the rates of a function's instances, over all that answered twice: sums are lower bounds while
// more may consume. Every measurement is ErrNotRequested if the Subscription names no workload.
type InstancesReading struct {
	// At is when they were read, and Window the longest time that rates were measured over: an instance with long calls is
	// measured over several calls.
	At     time.Time
	Window time.Duration
	// Answering and Silent instances at the last request; if none answers, nothing else is known.
	Answering, Silent Measurement
	// ProcessRate, UserExceptionRate and SystemExceptionRate in messages per second, summed.
	ProcessRate, UserExceptionRate, SystemExceptionRate Measurement
	// Busy is the mean share of time that an instance spends in the function's calls, from 0 to 1; slightly above 1 while
	// long calls end. It is unknown for sinks and sources, and if more than a tenth of the calls failed in a runtime that
	// does not time those (Python, Go). For an asynchronous function it is about 0 below saturation and 0.9 at it with
	// Pulsar 4.0; with 4.2 and 5.0 a call lasts until the future is complete, so this is the number of messages at once.
	Busy Measurement
	// Timed is the number of instances of which it is the mean.
	Timed int
	// ServiceTime is the mean time of a call in seconds, for an asynchronous function as for Busy; unknown without calls.
	ServiceTime Measurement
	// InFlight messages were received and neither processed nor failed yet.
	InFlight Measurement
	// Asynchronous is true if instances were seen to have more messages in flight than a synchronous one can.
	Asynchronous bool
	// Began is when the processes of instances began, by InstanceSample.ID: those within StartedFor.
	Began map[string]time.Time
}

// Coverage is the part of a subscription that a reading sums up. If it is not whole, sums are lower bounds.
type Coverage struct {
	// Topics is the number that count, and Known those with all partitions. A pattern without a listing counts as one.
	Topics, Known int
	// Missing are up to 5 of the other topics. Those without their first answer come last.
	Missing []MissingInput
}

// MissingInput is a topic or pattern that is unknown in whole or in part, and why.
type MissingInput struct {
	Name   string
	Reason error
}

// mostMissing bounds the list, which is part of a status.
const mostMissing = 5

// Complete reports whether every topic is known.
func (c Coverage) Complete() bool { return c.Known == c.Topics }

// FirstAnswers reports whether only first answers of new topics are missing, which take a second.
func (c Coverage) FirstAnswers() bool {
	return !c.Complete() && !slices.ContainsFunc(c.Missing, func(m MissingInput) bool { return !isFirstAnswer(m.Reason) })
}

// Lacks reports whether something is missing for the reason, by a fresh answer.
func (c Coverage) Lacks(reason error) bool {
	return slices.ContainsFunc(c.Missing, func(m MissingInput) bool {
		return errors.Is(m.Reason, reason) && !errors.Is(m.Reason, ErrStale)
	})
}

// Err names what is missing, as ErrPartial; nil for nothing.
func (c Coverage) Err() error {
	if c.Complete() {
		return nil
	}
	missing := make([]string, 0, mostMissing+1)
	for _, one := range c.Missing {
		missing = append(missing, fmt.Sprintf("%s (%s)", one.Name, Quote(fmt.Sprint(one.Reason))))
	}
	if more := c.Topics - c.Known - len(c.Missing); more > 0 {
		missing = append(missing, fmt.Sprintf("and %s more", grouped(more)))
	}
	return Errorf(ErrPartial, "%s of %s topics are known; missing: %s", grouped(c.Known), grouped(c.Topics),
		strings.Join(missing, ", "))
}

// grouped is a number with commas.
func grouped(n int) string {
	const thousand = 1000
	if n < thousand {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/thousand), n%thousand)
}

// miss adds an input that is not wholly known. More serious reasons come first: a missing subscription loses messages,
// and a first answer resolves itself.
func (c *Coverage) miss(name string, reason error) {
	c.Topics++
	c.Missing = append(c.Missing, MissingInput{name, reason})
	slices.SortStableFunc(c.Missing, func(a, b MissingInput) int { return urgency(b.Reason) - urgency(a.Reason) })
	c.Missing = c.Missing[:min(len(c.Missing), mostMissing)]
}

func urgency(reason error) int {
	switch {
	case errors.Is(reason, ErrSubscriptionNotFound) && !errors.Is(reason, ErrStale):
		return 2
	case isFirstAnswer(reason):
		return 0
	default:
		return 1
	}
}

// isFirstAnswer reports whether the first answer is the only missing one.
func isFirstAnswer(reason error) bool { return errors.Is(reason, ErrNoData) }
