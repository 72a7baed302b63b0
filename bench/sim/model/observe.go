// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// The names of the one subscription of every system.
const (
	Topic        = "persistent://public/default/in"
	Subscription = "public/default/fn"
)

// ageInterval is the time between two requests for the oldest message in seconds; one topic uses a third of them, at
// its poll. All partitions show the oldest message of the subscription. Held messages are as old as the replica's
// subscription.
const ageInterval = 30

// TopicSample is Pulsar's response now for one of the scenario's Topics. A partial response lacks the later half of the
// partitions.
func (s *System) TopicSample(topic int) (backlog.TopicSample, error) {
	if s.scenario.Outages.contain(s.second) {
		return backlog.TopicSample{}, fmt.Errorf("%w: no answer within 3s", backlog.ErrUnreachable)
	}
	sample := backlog.TopicSample{At: s.Time(), Detail: backlog.Full | backlog.Precise}
	var oldest time.Time
	if s.second%ageInterval < ageInterval/3 {
		sample.Detail |= backlog.Age
		if published, some := s.subscription.earliest(s.second); some {
			oldest = at(published)
		}
	}
	first, last := s.topics.partitions(topic)
	for i := first; i < last; i++ {
		index := i - first
		if last-first == 1 {
			index = backlog.NotPartitioned
		}
		published := s.topics.published[i]
		entries := int64(published / s.scenario.Batch)
		sample.Partitions = append(sample.Partitions, backlog.PartitionSample{
			Index: index, PublishedMessages: int64(published), AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{s.subscription.sample(i)},
		})
		sample.Partitions[i-first].Subscriptions[0].EarliestPublishTime = oldest
	}
	if s.scenario.Partial.contain(s.second) {
		missing, all := len(sample.Partitions)/2, len(sample.Partitions)
		sample.Partitions = sample.Partitions[:all-missing]
		sample.Incomplete = fmt.Errorf("%w: %d of %d partitions are missing", backlog.ErrPartial, missing, all)
	}
	if s.scenario.Falsify != nil {
		s.scenario.Falsify(s.second, &sample)
	}
	return sample, nil
}

// sample of one partition. Except for Failover the model has one queue, of which each partition shows its share.
func (b *subscription) sample(partition int) backlog.SubscriptionSample {
	s := b.scenario
	share := b.topics.share(partition)
	waiting := share * (b.poisoned + b.held() + b.delayed.total)
	if s.Type == backlog.Failover {
		waiting += b.waiting[partition].total + share*(b.nackedTotal()+b.retries.total)
	} else {
		waiting += share * b.queued()
	}
	sample := backlog.SubscriptionSample{
		Name: Subscription, Type: s.Type,
		BacklogEntries:    int64(math.Ceil(waiting/s.Batch - dust)),
		DelayedMessages:   int64(share * b.delayed.known),
		DeliveredMessages: int64(b.topics.deliveredOf(partition)),
	}
	if partition == 0 {
		sample.BacklogEntries += int64(s.Markers)
	}
	if s.Type != backlog.Failover {
		sample.UnackedMessages = int64(share * b.unacked())
	}
	for _, r := range b.set.active {
		sample.Consumers = append(sample.Consumers, backlog.ConsumerSample{
			ID: Subscription + "#" + strconv.Itoa(r.number), Component: Subscription, MeanBatch: int64(math.Round(s.Batch)),
		})
	}
	return sample
}

// InstancesSample is the instances' response now.
func (s *System) InstancesSample() backlog.InstancesSample {
	sample := backlog.InstancesSample{At: s.Time()}
	for _, r := range s.set.replicas {
		if s.second < r.consumes {
			sample.Silent++
			continue
		}
		calls, busy := int64(r.processed+r.failed), time.Duration(r.busy*float64(time.Second))
		sample.Instances = append(sample.Instances, backlog.InstanceSample{
			ID: strconv.Itoa(r.number), Received: calls + s.subscription.inFlight(r), Processed: int64(r.processed),
			UserExceptions: int64(r.failed), Calls: &calls, BusyTime: &busy, FailedCallsCounted: true,
		})
	}
	return sample
}

// inFlight messages are in the function's code: one for a synchronous function with work, as many as it may have
// pending for an asynchronous one.
func (b *subscription) inFlight(r *replica) int64 {
	const pending = 1000 // maxPendingAsyncRequests
	queued := r.queue.total
	if b.scenario.Type == backlog.Failover {
		queued = b.queued()
	}
	if !b.scenario.Asynchronous {
		return int64(min(1, queued))
	}
	return int64(min(pending, queued))
}

// Rough is what baselines of other projects see.
type Rough struct {
	// Entries is msgBacklog, with delayed messages and everything else.
	Entries float64
	// Busiest is Entries of the topic with the most.
	Busiest float64
	// Published messages since the last reset, and Busy and Processed of all consuming replicas since they started.
	Published, Processed, Busy float64
	Consuming                  int
}

// Rough is known unless Pulsar does not respond. A partial response is taken at face value, as its readers do.
func (s *System) Rough() (Rough, error) {
	if s.scenario.Outages.contain(s.second) {
		return Rough{}, backlog.ErrUnreachable
	}
	var r Rough
	for topic := range s.topics.recent {
		entries := 0.0
		first, last := s.topics.partitions(topic)
		for i := first; i < last; i++ {
			entries += float64(s.subscription.sample(i).BacklogEntries)
			r.Published += s.topics.published[i]
		}
		r.Entries, r.Busiest = r.Entries+entries, max(r.Busiest, entries)
	}
	if s.scenario.Partial.contain(s.second) {
		r.Entries, r.Busiest = r.Entries/2, r.Busiest/2
	}
	for _, one := range s.set.active {
		r.Consuming++
		r.Processed += one.processed
		r.Busy += one.busy
	}
	return r, nil
}

// CPU that all replicas use, in processors, over the last second. The metrics API would return the mean of 15 s or
// more, up to 15 s late: with that mean an HPA reacts even later.
func (s *System) CPU() float64 { return s.computing * s.scenario.CPU }

// Pods are the pods now.
func (s *System) Pods() Pods { return s.set.pods(s.second) }

// Crashing is the number of replicas that crash repeatedly: only an oracle knows which.
func (s *System) Crashing() int {
	crashing := 0
	for _, r := range s.set.replicas {
		if r.crashes {
			crashing++
		}
	}
	return crashing
}

// Processable messages wait for replicas or are at replicas that will process them, and more replicas would help: only
// an oracle can separate them.
func (s *System) Processable() float64 {
	b := &s.subscription
	if s.scenario.Pending.contain(s.second) || s.scenario.CrashingStarts.contain(s.second) {
		return 0 // more replicas would not run
	}
	sum := b.queued()
	if len(b.waiting) > 1 && s.scenario.Type != backlog.Failover {
		sum -= b.waiting[hotQueue].total + b.waiting[drainingQueue].total
	}
	if newShift(s).throws > 0 {
		sum -= b.nackedTotal() + b.retries.total
	}
	return sum
}

// Truth is known only to the model, for one second.
type Truth struct {
	// Oldest is the age in seconds of the oldest message that is due, failing ones included; 0 for none.
	Oldest int
	// Wait is how long a message published now waits with the current consumers, in seconds: infinite without any. In
	// ordered subscriptions, some wait longer.
	Wait float64
	// Needed replicas process the arrivals, and the backlog within the objective.
	Needed float64
	// Consuming replicas, of the Replicas requested, of which NotRunning do not run.
	Consuming, Replicas, NotRunning int
	// Delayed: some messages are not due yet. Throwing: the function throws. Holding: replicas hold messages for ever.
	// Falsified: answers are wrong.
	Delayed, Throwing, Holding, Falsified bool
}

// Truth of this second.
func (s *System) Truth() Truth {
	b, second := &s.subscription, float64(s.second)
	can := 0.0
	for _, r := range s.set.active {
		can += r.capacity(&s.scenario, s.second)
	}
	if s.scenario.Downstream != nil {
		can = min(can, s.scenario.Downstream(second))
	}
	queued := b.queued()
	truth := Truth{
		Needed:    (s.scenario.Due(second) + queued/s.scenario.Objective.Seconds()) / s.Capacity(second),
		Consuming: len(s.set.active), Replicas: len(s.set.replicas), NotRunning: s.Pods().Unready,
		Delayed: b.delayed.total > dust, Throwing: newShift(s).throws > 0 || b.poisoned > dust,
		Holding: s.scenario.Held > 0 && len(s.set.active) > 0, Falsified: s.scenario.Lies.contain(s.second),
	}
	if queued >= 1 {
		truth.Wait = queued / can
	}
	if at, some := b.earliest(s.second); some {
		truth.Oldest = s.second - at
	}
	return truth
}

// earliest is when the oldest message that is due was published, always failing and held ones included.
func (b *subscription) earliest(second int) (at int, some bool) {
	at, some = b.oldest(second)
	if b.poisoned > dust {
		at, some = min(at, b.poisonedAt), true
	}
	if b.scenario.Held > 0 && len(b.set.active) > 0 {
		for _, r := range b.set.active {
			at = min(at, r.consumes)
		}
		return at, true
	}
	return at, some
}
