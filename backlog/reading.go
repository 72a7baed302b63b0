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

// Reading is what is known of a subscription now, summed over its topics and partitions. Messages are messages, not
// entries; rates are messages per second over Window. Where Coverage is not whole, all sums are lower bounds.
type Reading struct {
	// Coverage is how many of the topics are known.
	Coverage Coverage
	// At is when the oldest part was measured.
	At time.Time
	// Type of the subscription; NoType while there was no consumer since the topics were loaded.
	Type SubscriptionType
	// OtherType is what some topics or partitions have instead of Type; empty when all that were consumed agree.
	OtherType SubscriptionType

	// Total is the whole backlog: waiting, delayed and dispatched but not acknowledged.
	Total Measurement
	// ExactAt is when Total was last counted exactly, with nothing published since; zero where some of it rests on the
	// broker's quick count, which may drift.
	ExactAt time.Time
	// Ready is Total without messages that are still delayed, as far as Pulsar reports: it learns of a delay when it reads
	// the message for a consumer, and stops counting down when the last one has left. So without a consumer the whole
	// backlog is ready: to start a replica for nothing is better than never to start one.
	Ready Measurement
	// Delayed messages, as far as the dispatcher has read; unknown while there is backlog and no consumer.
	Delayed Measurement
	// Unacked messages are with a consumer; unknown for Exclusive and Failover, which do not count them.
	Unacked Measurement
	// Undispatched is Ready without Unacked: what a new consumer could take.
	Undispatched Measurement

	// InReplay messages were read by the dispatcher and wait for a consumer with room: nacked ones, and what busy
	// consumers had no permits for. Estimated from entries.
	InReplay Measurement
	// Bytes of the whole backlog; ErrNotAsked unless the Subscription requests them.
	Bytes Measurement
	// OldestAge is how many seconds ago, at OldestAt, the oldest message of the backlog was published; 0 when there is no
	// backlog. It is measured less often than the rest, so it has a time and a staleness of its own.
	OldestAge Measurement
	OldestAt  time.Time

	// Doubted is how many entries wait by a newer answer, which is not believed yet: enough to wake one replica, and for
	// nothing else. 0 for none.
	Doubted float64

	// GrowthRate is how fast Total grew over Window by the present mean batch, in messages per second; below 0 where it
	// fell.
	GrowthRate Measurement
	// PublishRate is what arrives.
	PublishRate Measurement
	// LatestPublishRate is PublishRate over the newest answers that are at least 2 s apart, LatestWindow. After a load
	// step it has the new rate while Window still includes the old one; it is noisier.
	LatestPublishRate Measurement
	LatestWindow      time.Duration
	// DeliveryRate is what is sent to consumers, redeliveries included.
	DeliveryRate Measurement
	// ProcessRate is what consumers finish: deliveries less the growth of what they hold. What they gave back when they
	// left is not finished, so the time in which some left is left out.
	ProcessRate Measurement
	// Window is how long the rates were measured over; 0 while they are unknown.
	Window time.Duration
	// LeastReady and LeastUndispatched are the smallest values within Window: above 0, there was backlog all the time.
	LeastReady        Measurement
	LeastUndispatched Measurement

	// Consumers is how many replicas are connected, each counted once on however many topics and partitions it is: standby
	// ones of Failover and Exclusive too. ErrNotAsked until the first full answer. Full answers come with each fetch while
	// there is backlog and once a minute else, and not from bulk answers, so that of an idle subscription it may be older
	// than At: by a minute, or by QuietInterval.
	Consumers Measurement
	// SteadyConsumers says that the same number was connected all through Window.
	SteadyConsumers bool
	// Components are the functions that the consumers say they belong to (tenant/namespace/name), sorted, each once. More
	// than one share the subscription's messages.
	Components []string
	// Blocked says that dispatch has stopped somewhere because too many messages are not acknowledged.
	Blocked bool
	// Throttled says that a rate limit held dispatch back within Window: more replicas would get no more.
	Throttled bool
	// Draining says that Key_Shared hashes wait for their former consumer after one joined or left.
	Draining bool

	// Partitions is how many there are over all topics, a topic that is not partitioned counting as one: with Failover no
	// more replicas than that can work.
	Partitions int
	// UnreadPartitions have backlog and no consumer, while others have one: a client finds added partitions up to a minute
	// late. UnreadMessages is their ready backlog. ErrNotAsked until the first full answer.
	UnreadPartitions, UnreadMessages Measurement
	// UnsubscribedTopics match a pattern and have no such subscription (yet); they count for nothing in the sums.
	UnsubscribedTopics int

	// Instances is what the instances count themselves.
	Instances InstancesReading

	// Trouble is why newer answers failed; nil when the last fetch was good. At says how old the reading is for it.
	Trouble error

	// consumers is what Consumers, Components and the unread partitions follow from.
	consumers consumers
}

// plus sums two readings of one subscription on different topics. Instances are no part of a topic: they stay the first
// one's.
func (r Reading) plus(other Reading) Reading {
	sum := r
	sum.Total, sum.Ready, sum.Delayed = r.Total.plus(other.Total), r.Ready.plus(other.Ready), r.Delayed.plus(other.Delayed)
	sum.Unacked, sum.Undispatched = r.Unacked.plus(other.Unacked), r.Undispatched.plus(other.Undispatched)
	sum.InReplay, sum.Bytes = r.InReplay.plus(other.InReplay), r.Bytes.plus(other.Bytes)
	sum.OldestAge = r.OldestAge.larger(other.OldestAge)
	sum.Doubted += other.Doubted
	sum.GrowthRate = r.GrowthRate.plus(other.GrowthRate)
	sum.PublishRate = r.PublishRate.plus(other.PublishRate)
	sum.LatestPublishRate = r.LatestPublishRate.plus(other.LatestPublishRate)
	sum.LatestWindow = max(r.LatestWindow, other.LatestWindow)
	sum.DeliveryRate = r.DeliveryRate.plus(other.DeliveryRate)
	sum.ProcessRate = r.ProcessRate.plus(other.ProcessRate)
	sum.Window = max(r.Window, other.Window)
	sum.LeastReady = r.LeastReady.plus(other.LeastReady)
	sum.LeastUndispatched = r.LeastUndispatched.plus(other.LeastUndispatched)
	sum.SteadyConsumers = r.SteadyConsumers && other.SteadyConsumers
	sum.Blocked = r.Blocked || other.Blocked
	sum.Throttled = r.Throttled || other.Throttled
	sum.Draining = r.Draining || other.Draining
	sum.Partitions += other.Partitions
	sum.UnsubscribedTopics += other.UnsubscribedTopics
	if other.At.Before(r.At) {
		sum.At = other.At
	}
	if other.ExactAt.Before(r.ExactAt) {
		sum.ExactAt = other.ExactAt
	}
	if other.OldestAt.Before(r.OldestAt) {
		sum.OldestAt = other.OldestAt
	}
	one, another := r.Type.with(other.Type)
	sum.Type, sum.OtherType = one, cmp.Or(another, r.OtherType, other.OtherType)
	if r.Trouble == nil {
		sum.Trouble = other.Trouble
	}
	sum.consumers = r.consumers.plus(other.consumers)
	sum.countConsumers()
	return sum
}

// PartitionReading is what is known of one partition of a subscription.
type PartitionReading struct {
	Topic string
	// Index of the partition, or NotPartitioned.
	Index int
	// Ready messages.
	Ready Measurement
	// PublishRate and ProcessRate in messages per second over the subscription's Window.
	PublishRate, ProcessRate Measurement
	// Consumers connected; ErrNotAsked until the first full answer. All but PublishRate are ErrSubscriptionNotFound on a
	// partition that does not have the subscription.
	Consumers Measurement
}

// InstancesReading is what the instances of a function count themselves, over all that answered twice. Every
// measurement is ErrNotAsked when the Subscription names no workload.
type InstancesReading struct {
	// At is when they were read, and Window how long the rates were measured over: the longest of the instances, for one
	// with long calls is measured over several calls.
	At     time.Time
	Window time.Duration
	// Answering and Silent instances at the last request; when none answers, nothing else is known.
	Answering, Silent Measurement
	// ReceiveRate, ProcessRate, UserExceptionRate and SystemExceptionRate in messages per second, summed.
	ReceiveRate, ProcessRate, UserExceptionRate, SystemExceptionRate Measurement
	// Busy is the mean share of the time that an instance spends in the function's calls, from 0 to 1; a little above
	// while long calls end. Unknown for sinks and sources, and where more than a tenth of the calls failed in a runtime
	// that does not time those (Python, Go). Of an asynchronous function it depends on Pulsar: with 4.0 it is the time of
	// the calls alone plus the wait for a free slot, about 0 below saturation and 0.9 at it; with 4.2 and 5.0 it lasts
	// until the future is complete, so this is how many messages are worked on at once, above 1 (11 was seen of 10
	// futures).
	Busy Measurement
	// ServiceTime is the mean time of a call in seconds, of an asynchronous function as for Busy; unknown without calls.
	ServiceTime Measurement
	// InFlight messages were received and neither processed nor failed yet.
	InFlight Measurement
	// Asynchronous says that instances were seen to work on more messages at once than a synchronous one can.
	Asynchronous bool
}

// Coverage is how much of a subscription a reading sums up. Where that is not all, sums are lower bounds.
type Coverage struct {
	// Topics that count, and how many of them are Known with all partitions. A pattern without a listing counts as
	// one.
	Topics, Known int
	// Missing are up to 5 of the others. Those that wait for their first answer come last.
	Missing []MissingInput
}

// MissingInput is a topic or pattern that is not known, or not with all partitions, and why.
type MissingInput struct {
	Name   string
	Reason error
}

// mostMissing bounds the list: it ends up in a status.
const mostMissing = 5

// Whole says that every topic is known.
func (c Coverage) Whole() bool { return c.Known == c.Topics }

// FirstAnswers says that only first answers of topics that are new are missing, which take a second.
func (c Coverage) FirstAnswers() bool {
	return !c.Whole() && !slices.ContainsFunc(c.Missing, func(m MissingInput) bool { return !isFirstAnswer(m.Reason) })
}

// Lacks says that something is missing for the reason, by a fresh answer.
func (c Coverage) Lacks(reason error) bool {
	return slices.ContainsFunc(c.Missing, func(m MissingInput) bool {
		return errors.Is(m.Reason, reason) && !errors.Is(m.Reason, ErrStale)
	})
}

// Err names what is missing, as ErrPartial; nil for nothing.
func (c Coverage) Err() error {
	if c.Whole() {
		return nil
	}
	missing := make([]string, 0, mostMissing+1)
	for _, one := range c.Missing {
		missing = append(missing, fmt.Sprintf("%s (%s)", one.Name, Quote(fmt.Sprint(one.Reason))))
	}
	if more := c.Topics - c.Known - len(c.Missing); more > 0 {
		missing = append(missing, fmt.Sprintf("and %s more", grouped(more)))
	}
	return Because(ErrPartial, "%s of %s topics are known; missing: %s", grouped(c.Known), grouped(c.Topics),
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

// miss takes in an input that is not wholly known. The list has those first that hold back more: a subscription that is
// missing loses messages, and a first answer comes by itself.
func (c *Coverage) miss(name string, reason error) {
	c.Topics++
	at := slices.IndexFunc(c.Missing, func(m MissingInput) bool { return urgency(m.Reason) < urgency(reason) })
	switch {
	case at >= 0:
		c.Missing = slices.Insert(c.Missing, at, MissingInput{name, reason})
		c.Missing = c.Missing[:min(len(c.Missing), mostMissing)]
	case len(c.Missing) < mostMissing:
		c.Missing = append(c.Missing, MissingInput{name, reason})
	}
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

// isFirstAnswer says that something is unknown only until the first answer, which is under way.
func isFirstAnswer(reason error) bool { return errors.Is(reason, ErrNoData) }
