// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"time"
)

// Detail is what a fetch requests in addition to the basic answer. Each detail has a cost for the broker, so none is
// part of every fetch.
type Detail uint8

// The details; they may be combined with |.
const (
	// Consumers adds the connected consumers: about 1 KB for each and partition.
	Consumers Detail = 1 << iota
	// Entries adds entry counters: one more request.
	Entries
	// Precise counts the backlog exactly (CPU time, no reads).
	Precise
	// Age adds the publish time of the oldest message: one entry is read from storage for each subscription with a
	// backlog.
	Age
	// Bytes adds the backlog in bytes: it takes a lock that appends also need, for each subscription.
	Bytes

	// Slim has no detail. The first request of a topic is Full and Precise.
	Slim Detail = 0
	Full        = Consumers | Entries
)

// Has reports whether all of the given details are requested.
func (d Detail) Has(details Detail) bool { return d&details == details }

// Request is the content of a fetch of a topic.
type Request struct {
	Detail Detail
	// Subscriptions to read, by name; nil for all. A topic may have many that no owner tracks.
	Subscriptions []string
}

// Wants reports whether to read the subscription.
func (r Request) Wants(subscription string) bool {
	return r.Subscriptions == nil || slices.Contains(r.Subscriptions, subscription)
}

// SubscriptionType is Pulsar's name for how consumers share messages: Exclusive, Shared, Failover, Key_Shared, or None
// while no consumer has connected since the topic was loaded.
type SubscriptionType string

// The subscription types as Pulsar spells them.
const (
	Exclusive SubscriptionType = "Exclusive"
	Shared    SubscriptionType = "Shared"
	Failover  SubscriptionType = "Failover"
	KeyShared SubscriptionType = "Key_Shared"
	NoType    SubscriptionType = "None"
	// Stream is the ordered type of scalable topics. Each segment has one consumer, and the broker splits segments while
	// there are more consumers. The unordered type of scalable topics is Shared on each segment.
	Stream SubscriptionType = "Stream"
)

// with merges the types of two parts: the type, and the other one if they differ. An unknown type is ignored.
func (t SubscriptionType) with(other SubscriptionType) (one, another SubscriptionType) {
	switch {
	case other == "" || other == NoType || other == t:
		return t, ""
	case t == "" || t == NoType:
		return other, ""
	default:
		return t, other
	}
}

// NotPartitioned is the index of the only partition of a topic that is not partitioned.
const NotPartitioned = -1

// PartitionSuffix separates a topic's name and the index of a partition.
const PartitionSuffix = "-partition-"

// TopicSample is one answer about one topic.
type TopicSample struct {
	// At is when the request was sent: the answer is at least as new.
	At time.Time
	// Detail is what was answered, without requested details that were not available.
	Detail Detail
	// Subscriptions that were read, by name, whether or not they exist; nil for all.
	Subscriptions []string
	Partitions    []PartitionSample
	// Others exist and were not read.
	Others OtherSubscriptions
	// PeekedEntries of a backlog from before the topic was loaded were read one by one, with detail Entries, and have
	// PeekedMessages; 0 for none.
	PeekedEntries, PeekedMessages int64
	// Incomplete is why some partitions are missing, an ErrPartial with their number; nil if all exist.
	Incomplete error
	// Uncounted is why Pulsar reports no counters of messages, an ErrNotReported; nil if it does. Then all counters are 0,
	// and the backlog is all that is known.
	Uncounted error
}

func (s TopicSample) covers(subscription string) bool {
	return Request{Subscriptions: s.Subscriptions}.Wants(subscription)
}

// PartitionSample is one partition of a TopicSample, with Pulsar's own counters, which restart at 0 when the topic is
// loaded again.
type PartitionSample struct {
	// Index of the partition, or NotPartitioned.
	Index int
	// PublishedMessages is msgInCounter: messages published since the topic was loaded.
	PublishedMessages int64
	// PublishedBytes is bytesInCounter: their size as stored, in whole compressed batches.
	PublishedBytes int64
	// AddedEntries is entriesAddedCounter: entries (batches) written since the topic was loaded; nil without detail
	// Entries.
	AddedEntries *int64
	// Subscriptions of the partition, in no order.
	Subscriptions []SubscriptionSample
}

// SubscriptionSample is one subscription of one partition.
type SubscriptionSample struct {
	Name string
	Type SubscriptionType
	// BacklogEntries is msgBacklog: entries (batches), not messages, including delayed and dispatched ones.
	BacklogEntries int64
	// DelayedMessages is msgDelayed: messages that are still delayed, as far as the dispatcher has read. Without a
	// consumer it does not change, although messages become due (4.0.8: 50 messages of 6 s were still 50 after 20 s).
	DelayedMessages int64
	// UnackedMessages is unackedMessages: dispatched and not acknowledged; always 0 for Exclusive and Failover.
	UnackedMessages int64
	// DeliveredMessages is msgOutCounter: messages sent to consumers since the topic was loaded, redeliveries included.
	DeliveredMessages int64
	// InReplayEntries is msgInReplay: entries that were read and wait for a consumer with permits, negatively acknowledged
	// ones included.
	InReplayEntries int64
	// Blocked is blockedSubscriptionOnUnackedMsgs: dispatch has stopped until messages are acknowledged.
	Blocked bool
	// ThrottledEvents counts how often a rate limit delayed dispatch since the topic was loaded: the sum of the
	// dispatchThrottled...EventsBy... counters.
	ThrottledEvents int64
	// DrainingHashes is drainingHashesCount: Key_Shared hashes that are blocked by their former consumer.
	DrainingHashes int64
	// BacklogBytes is backlogSize; valid with detail Bytes.
	BacklogBytes int64
	// EarliestPublishTime is earliestMsgPublishTimeInBacklog, by the producer's clock; with detail Age, zero without a
	// backlog.
	EarliestPublishTime time.Time
	// Consumers connected to the partition; empty without detail Consumers. If there are very many, MoreConsumers counts
	// the rest.
	Consumers     []ConsumerSample
	MoreConsumers int
}

func (s *SubscriptionSample) consumerCount() int { return len(s.Consumers) + s.MoreConsumers }

// fixedDelays is slightly less than the number of delayed messages at which the broker stops reading if all have the
// same delay (delayedDeliveryFixedDelayDetectionLookahead, 50,000): some become due at any time.
const fixedDelays = 45_000

// stopsReading reports whether the broker does not read the messages behind many of a fixed delay, although all
// consumers could receive: they are delayed too (pulsar#23353). An answer without consumers changes nothing.
//
// Source: InMemoryDelayedDeliveryTracker.shouldPauseAllDeliveries.
func (s *SubscriptionSample) stopsReading(before partitionCounters) bool {
	switch {
	case s.DelayedMessages < fixedDelays || s.Blocked || s.ThrottledEvents != before.throttled:
		return false
	case len(s.Consumers) == 0:
		return before.unread
	default:
		return !slices.ContainsFunc(s.Consumers, func(c ConsumerSample) bool { return c.Permits <= 0 })
	}
}

// ConsumerSample is one consumer of a subscription on one partition.
type ConsumerSample struct {
	// ID identifies a consumer across partitions and topics: a Function's instance ID (t/n/name#3) if the consumer reports
	// it, else the consumer's name. Several consumers of one name on one partition are distinct.
	ID string
	// Name is consumerName, which several consumers may share.
	Name string
	// ConnectedSince is connectedSince: a consumer that reconnects under its name is another one to the broker, which took
	// back the messages of the former one. Zero if unknown.
	ConnectedSince time.Time
	// Component is the function that the consumer reports, as tenant/namespace/name; empty for none.
	Component string
	// MeanBatch is avgMessagesPerEntry, an approximate recent mean; 0 before the first dispatch.
	MeanBatch int64
	// Permits is availablePermits: messages that it can receive; negative after a large batch.
	Permits int64
	// UnackedMessages that it holds; 0 for Exclusive and Failover, which do not count them.
	UnackedMessages int64
}

// InstancesSample is one answer of the instances of a workload.
type InstancesSample struct {
	// At is when they were read.
	At time.Time
	// Instances that answered.
	Instances []InstanceSample
	// Silent is the number of instances that did not answer.
	Silent int
}

// InstanceSample has the counters of one instance since it started.
type InstanceSample struct {
	// ID distinguishes the instances of a workload.
	ID string
	// At is when it was read; that of the whole answer if zero.
	At time.Time
	// Received, Processed and the exceptions are messages; for sinks, Processed is the number written. If they were not
	// read at the same time, Received was read first, so that messages which seem in flight really are.
	Received, Processed, UserExceptions, SystemExceptions int64
	// Calls and BusyTime are the number of calls of the function and the time spent in them; nil for sinks and sources,
	// which do not measure it.
	Calls    *int64
	BusyTime *time.Duration
	// FailedCallsCounted is true if Calls and BusyTime include failed calls (Java); Python and Go leave them out.
	FailedCallsCounted bool
	// Began is when the process of the instance began, by its own clock; zero if unknown, as for Go.
	Began time.Time
}

// InFlight messages were received and neither processed nor failed. The counters are read one after the other, and a
// message may fail twice, so the result may be negative.
func (s InstanceSample) InFlight() int64 { return s.Received - s.Finished() }

// Finished messages were processed or failed.
func (s InstanceSample) Finished() int64 { return s.Processed + s.UserExceptions + s.SystemExceptions }

// MostSynchronous is the maximum number of messages in flight of a synchronous instance: one in the call (Java, Go),
// and two more that Python reads ahead (seen on 4.0.8: received is processed+3 while a message is in the call). An
// InstanceSource ensures that counters which were not read at the same time do not show more.
const MostSynchronous = 3
