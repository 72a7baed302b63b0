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

// Time of the second that was last stepped.
func (w *System) Time() time.Time { return at(w.second) }

func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0) }

// Answers says whether Pulsar answers at all, and with all partitions.
func (w *System) answers() error {
	switch {
	case w.scenario.Outages.contain(w.second):
		return fmt.Errorf("%w: no answer within 3s", backlog.ErrUnreachable)
	case w.scenario.Partial.contain(w.second):
		return fmt.Errorf("%w: 1 of %d partitions are missing", backlog.ErrPartial, w.scenario.Partitions)
	default:
		return nil
	}
}

// TopicSample is what Pulsar would say now about one of the scenario's Topics, whole.
func (w *System) TopicSample(topic int) (backlog.TopicSample, error) {
	if err := w.answers(); err != nil {
		return backlog.TopicSample{}, err
	}
	sample := backlog.TopicSample{At: w.Time(), Detail: backlog.Full | backlog.Precise}
	first, last := w.partitions(topic)
	for at := first; at < last; at++ {
		index := at - first
		if last-first == 1 {
			index = backlog.NotPartitioned
		}
		entries := int64(w.published[at] / w.scenario.Batch)
		sample.Partitions = append(sample.Partitions, backlog.PartitionSample{
			Index: index, PublishedMessages: int64(w.published[at]), AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{w.subscription(at)},
		})
	}
	return sample, nil
}

// partitions of a topic in published: from one to before another.
func (w *System) partitions(topic int) (first, last int) {
	if topic == 0 {
		return 0, w.scenario.Partitions
	}
	return w.scenario.Partitions + topic - 1, w.scenario.Partitions + topic
}

// subscription on one partition. But for Failover the model has one queue, of which each partition shows its share.
func (w *System) subscription(partition int) backlog.SubscriptionSample {
	s := w.scenario
	share := w.share(partition)
	waiting := share * (w.stuck + w.held() + w.delayedTotal)
	if s.Type == backlog.Failover {
		waiting += w.waiting[partition].total + share*(w.nacked()+w.again.total)
	} else {
		waiting += share * w.queued()
	}
	sample := backlog.SubscriptionSample{
		Name: Subscription, Type: s.Type,
		BacklogEntries:    int64(math.Ceil(waiting/s.Batch - dust)),
		DelayedMessages:   int64(share * w.delayedKnown),
		DeliveredMessages: int64(share * w.delivered),
	}
	if len(w.recent) > 1 {
		sample.DeliveredMessages = int64(w.shownOf(partition))
	}
	if partition == 0 {
		sample.BacklogEntries += int64(s.Markers)
	}
	consuming := w.active
	if s.Type != backlog.Failover {
		sample.UnackedMessages = int64(share * w.unacked())
	}
	for _, r := range consuming {
		sample.Consumers = append(sample.Consumers, backlog.ConsumerSample{
			ID: Subscription + "#" + strconv.Itoa(r.number), Component: Subscription, MeanBatch: int64(math.Round(s.Batch)),
		})
	}
	return sample
}

// share of a partition, or of a further topic, in what the model has one queue for: as much as of the arrivals.
func (w *System) share(at int) float64 {
	all, sum := 0.0, 0.0
	for _, recent := range w.recent {
		all += recent
	}
	if at >= w.scenario.Partitions {
		return share(w.recent[1+at-w.scenario.Partitions], all, len(w.recent))
	}
	for _, weight := range w.scenario.Weights {
		sum += weight
	}
	own := w.scenario.Weights[at] / sum
	if len(w.recent) == 1 {
		return own
	}
	return own * share(w.recent[0], all, len(w.recent))
}

// shownOf a partition, or of a further topic, is what the broker counted as delivered.
func (w *System) shownOf(at int) float64 {
	if at >= w.scenario.Partitions {
		return w.shown[1+at-w.scenario.Partitions]
	}
	sum := 0.0
	for _, weight := range w.scenario.Weights {
		sum += weight
	}
	return w.shown[0] * w.scenario.Weights[at] / sum
}

func share(part, all float64, parts int) float64 {
	if all <= 0 {
		return 1 / float64(parts)
	}
	return part / all
}

func (w *System) held() float64 { return w.scenario.Held * float64(len(w.active)) }

// unacked messages are with consumers: in their queues, held, or failed and waiting to be tried again.
func (w *System) unacked() float64 {
	sum := w.held()
	consuming := w.active
	for _, r := range consuming {
		sum += r.queue.total
	}
	if len(consuming) > 0 {
		sum += w.stuck + w.nacked()
	}
	return sum
}

// InstancesSample is what the instances would say now.
func (w *System) InstancesSample() backlog.InstancesSample {
	sample := backlog.InstancesSample{At: w.Time()}
	for _, r := range w.replicas {
		if w.second < r.consumes {
			sample.Silent++
			continue
		}
		calls, busy := int64(r.processed+r.failed), time.Duration(r.busy*float64(time.Second))
		sample.Instances = append(sample.Instances, backlog.InstanceSample{
			ID: strconv.Itoa(
				r.number), Received: calls + w.inFlight(r), Processed: int64(r.processed), UserExceptions: int64(r.failed),
			Calls: &calls, BusyTime: &busy, FailedCallsCounted: true,
		})
	}
	return sample
}

// inFlight messages have been handed to the function's code: one of a synchronous function while it has work, as many
// as it may have pending of an asynchronous one.
func (w *System) inFlight(r *replica) int64 {
	const pending = 1000 // maxPendingAsyncRequests
	queued := r.queue.total
	if w.scenario.Type == backlog.Failover {
		queued = w.queued()
	}
	if !w.scenario.Asynchronous {
		return int64(min(1, queued))
	}
	return int64(min(pending, queued))
}

// Rough is what baselines are shown that are no part of this project.
type Rough struct {
	// Entries is msgBacklog, with delayed messages and whatever else.
	Entries float64
	// Busiest is Entries of the topic that has the most.
	Busiest float64
	// Published messages since the last reset, and Busy and Processed of all consuming replicas since they started.
	Published, Processed, Busy float64
	Consuming                  int
}

// Rough is known unless Pulsar does not answer. A partial answer is taken at face value, as its readers do.
func (w *System) Rough() (Rough, error) {
	if w.scenario.Outages.contain(w.second) {
		return Rough{}, backlog.ErrUnreachable
	}
	var r Rough
	for topic := range w.recent {
		entries := 0.0
		first, last := w.partitions(topic)
		for at := first; at < last; at++ {
			entries += float64(w.subscription(at).BacklogEntries)
			r.Published += w.published[at]
		}
		r.Entries, r.Busiest = r.Entries+entries, max(r.Busiest, entries)
	}
	if w.scenario.Partial.contain(w.second) {
		r.Entries, r.Busiest = r.Entries/2, r.Busiest/2
	}
	for _, one := range w.active {
		r.Consuming++
		r.Processed += one.processed
		r.Busy += one.busy
	}
	return r, nil
}

// CPU that all replicas use, in processors, over the last second. The metrics API would give the mean of 15 s or more,
// up to 15 s late: tried here, the mean has an HPA on it come later still.
func (w *System) CPU() float64 { return w.computing * w.scenario.CPU }

// Crashing is how many of the replicas that were asked for end again and again: only an oracle knows which.
func (w *System) Crashing() int {
	crashing := 0
	for _, r := range w.replicas {
		if r.crashes {
			crashing++
		}
	}
	return crashing
}

// Processable messages wait, or are with replicas that will process them, and more replicas would help with them: only
// an oracle tells them from the rest.
func (w *System) Processable() float64 {
	s := w.scenario
	if s.Pending.contain(w.second) || s.CrashingStarts.contain(w.second) {
		return 0 // more replicas would not run
	}
	sum := w.queued()
	if len(w.waiting) > 1 && s.Type != backlog.Failover { // of a hot key, or with a former consumer to wait for
		sum -= w.waiting[1].total + w.waiting[2].total
	}
	if w.throws() > 0 {
		sum -= w.nacked() + w.again.total
	}
	return sum
}
