// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"slices"
	"time"
)

// Detail says what a fetch requests beyond what is always there. Each costs the broker something, so none is requested
// at every fetch.
type Detail uint8

// The details; they may be combined with |.
const (
	// Consumers adds who is connected: about 1 KB for each and partition.
	Consumers Detail = 1 << iota
	// Entries adds entry counters: one more request.
	Entries
	// Precise counts the backlog exactly (processor time, no reads).
	Precise
	// Age adds the publish time of the oldest message: one entry is read from storage for each subscription with backlog.
	Age
	// Bytes adds the backlog in bytes: a lock that appends need too, for each subscription.
	Bytes

	// Slim is none of them, and Full is the first request of a topic.
	Slim Detail = 0
	Full        = Consumers | Entries
)

// Has says whether all of the given details are requested.
func (d Detail) Has(details Detail) bool { return d&details == details }

// Request says what a fetch of a topic is to return.
type Request struct {
	Detail Detail
	// Subscriptions to read, by name; nil for all. A topic may have many that no owner tracks.
	Subscriptions []string
}

// Wants says whether the subscription is to be read.
func (r Request) Wants(subscription string) bool {
	return r.Subscriptions == nil || slices.Contains(r.Subscriptions, subscription)
}

// SubscriptionType is Pulsar's name for how messages are shared among consumers: Exclusive, Shared, Failover,
// Key_Shared, or None while no consumer has connected since the topic was loaded.
type SubscriptionType string

// The subscription types as Pulsar spells them.
const (
	Exclusive SubscriptionType = "Exclusive"
	Shared    SubscriptionType = "Shared"
	Failover  SubscriptionType = "Failover"
	KeyShared SubscriptionType = "Key_Shared"
	NoType    SubscriptionType = "None"
)

// with is the type of two parts, and that of the other where they differ; one that is not known says nothing.
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

// TopicSample is one answer about one topic.
type TopicSample struct {
	// At is when the request was sent: what the answer says is at least as new.
	At time.Time
	// Detail is what was answered: a detail that was requested and could not be had is missing.
	Detail Detail
	// Subscriptions that were read, by name, whether they are there or not; nil for all.
	Subscriptions []string
	Partitions    []PartitionSample
	// PeekedEntries of a backlog from before the topic was loaded were looked at one by one, with detail Entries, and have
	// PeekedMessages; 0 for none.
	PeekedEntries, PeekedMessages int64
	// Incomplete is why some partitions are missing, an ErrPartial that says how many; nil when all are there.
	Incomplete error
}

// covers says whether the subscription was looked for.
func (s TopicSample) covers(subscription string) bool {
	return Request{Subscriptions: s.Subscriptions}.Wants(subscription)
}

// PartitionSample is one partition of a TopicSample, with Pulsar's own counters (they restart at 0 when the topic is
// loaded again).
type PartitionSample struct {
	// Index of the partition, or NotPartitioned.
	Index int
	// PublishedMessages is msgInCounter: messages published since the topic was loaded.
	PublishedMessages int64
	// PublishedBytes is bytesInCounter: the bytes of them as they are stored, whole batches, compressed.
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
	// BacklogEntries is msgBacklog: entries (batches), not messages, with delayed and dispatched ones.
	BacklogEntries int64
	// DelayedMessages is msgDelayed: messages that are still delayed, as far as the dispatcher has read. While no client
	// consumes it stays what it was, however many fall due (4.0.8: 50 messages of 6 s were 50 still after 20 s).
	DelayedMessages int64
	// UnackedMessages is unackedMessages: dispatched and not acknowledged; always 0 for Exclusive and Failover.
	UnackedMessages int64
	// DeliveredMessages is msgOutCounter: messages sent to consumers since the topic was loaded, redeliveries included.
	DeliveredMessages int64
	// InReplayEntries is msgInReplay: entries read and waiting for a consumer with room, nacked ones among them.
	InReplayEntries int64
	// Blocked is blockedSubscriptionOnUnackedMsgs: dispatch has stopped until messages are acknowledged.
	Blocked bool
	// ThrottledEvents counts how often a rate limit held dispatch back since the topic was loaded: the sum of the
	// dispatchThrottled...EventsBy... counters.
	ThrottledEvents int64
	// DrainingHashes is drainingHashesCount: Key_Shared hashes that wait for their former consumer.
	DrainingHashes int64
	// ActiveConsumer is activeConsumerName, for Failover and Exclusive.
	ActiveConsumer string
	// BacklogBytes is backlogSize; meaningful with detail Bytes.
	BacklogBytes int64
	// EarliestPublishTime is earliestMsgPublishTimeInBacklog, by the producer's clock; with detail Age, zero when there is
	// no backlog.
	EarliestPublishTime time.Time
	// Consumers connected to the partition; empty without detail Consumers. Where there are very many, MoreConsumers are
	// only counted.
	Consumers     []ConsumerSample
	MoreConsumers int
}

// consumerCount is how many consumers are connected.
func (s *SubscriptionSample) consumerCount() int { return len(s.Consumers) + s.MoreConsumers }

// ConsumerSample is one consumer of a subscription on one partition.
type ConsumerSample struct {
	// ID distinguishes consumers across partitions and topics: a Function's instance id (t/n/name#3) where the consumer
	// says it, else the consumer's name, by which several on one partition are several all the same.
	ID string
	// Name is consumerName, which several consumers may share.
	Name string
	// ConnectedSince is connectedSince: a consumer that comes back under its name is another one to the broker, which took
	// back what the former held. Zero where it is unknown.
	ConnectedSince time.Time
	// Component is the function that the consumer says it belongs to, as tenant/namespace/name; empty when it says none.
	Component string
	// MeanBatch is avgMessagesPerEntry, a rough recent mean; 0 before the first dispatch.
	MeanBatch int64
	// Permits is availablePermits: messages that it has room for; below 0 after a large batch.
	Permits int64
	// UnackedMessages it holds; 0 for Exclusive and Failover, which do not count them.
	UnackedMessages int64
}

// InstancesSample is what the instances of a workload said.
type InstancesSample struct {
	// At is when they were read.
	At time.Time
	// Instances that answered.
	Instances []InstanceSample
	// Silent is how many more there are that did not answer.
	Silent int
}

// InstanceSample is what one instance counts since it started.
type InstanceSample struct {
	// ID distinguishes the instances of a workload.
	ID string
	// Received, Processed and the exceptions are messages; for sinks, Processed is what was written. Where they were not
	// read at one time, Received was read first: what seems to be in flight is.
	Received, Processed, UserExceptions, SystemExceptions int64
	// Calls and BusyTime are the number of calls of the function and the time spent in them; nil for sinks and sources,
	// which do not measure it.
	Calls    *int64
	BusyTime *time.Duration
	// FailedCallsCounted says that Calls and BusyTime include calls that failed (Java), which Python and Go leave out.
	FailedCallsCounted bool
}

// InFlight messages were received and neither processed nor failed. The counters are read one after the other, and a
// message may fail twice, so that it may be below 0.
func (s InstanceSample) InFlight() int64 { return s.Received - s.Finished() }

// Finished messages were processed or failed.
func (s InstanceSample) Finished() int64 { return s.Processed + s.UserExceptions + s.SystemExceptions }

// MostSynchronous is how many messages a synchronous instance has in flight: one in the call (Java, Go), and two more
// that Python reads ahead (seen on 4.0.8: received is processed+3 while a message is in the call). An InstanceSource
// sees to it that counters which were not read at one time do not show more.
const MostSynchronous = 3

// BulkSample is the rough state of many topics.
type BulkSample struct {
	// At is the oldest time at which any of it may have been measured.
	At time.Time
	// Topics by complete name, each partition of its own.
	Topics map[string]BulkTopic
}

// BulkTopic is one topic or partition in a BulkSample.
type BulkTopic struct {
	// PublishedMessages is Pulsar's own counter of messages published since the topic was loaded.
	PublishedMessages int64
	Subscriptions     map[string]BulkSubscription
}

// BulkSubscription is one subscription in a BulkSample.
type BulkSubscription struct {
	BacklogEntries int64
	Consumers      int
}
