// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"context"
	"iter"
	"time"
)

// Source fetches the present state of a topic.
//
// An answer that lacks partitions is ErrPartial and never a smaller sum. Every error wraps one of the reasons of
// this package and names what the user can do.
type Source interface {
	Fetch(ctx context.Context, topic Topic, detail Detail) (TopicSample, error)
}

// Detail says how much a fetch asks for. A full answer costs the broker about 1 KB for each consumer and partition and
// one more request, so it is asked for while there is backlog, and rarely otherwise.
type Detail int

// The details.
const (
	// Slim leaves out consumers and entry counters.
	Slim Detail = iota
	// Full has everything.
	Full
)

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

// NotPartitioned is the index of the only partition of a topic that is not partitioned.
const NotPartitioned = -1

// TopicSample is one complete answer about one topic.
type TopicSample struct {
	// At is when the request was sent: what the answer says is at least as new.
	At         time.Time
	Detail     Detail
	Partitions []PartitionSample
}

// parts yields the subscription of this name on every partition that has it, with the partition's index.
func (s TopicSample) parts(name string) iter.Seq2[int, SubscriptionSample] {
	return func(yield func(int, SubscriptionSample) bool) {
		for _, partition := range s.Partitions {
			for _, subscription := range partition.Subscriptions {
				if subscription.Name == name && !yield(partition.Index, subscription) {
					return
				}
			}
		}
	}
}

// PartitionSample is one partition of a TopicSample, with Pulsar's own counters (they restart at 0 when the topic is
// loaded again).
type PartitionSample struct {
	// Index of the partition, or NotPartitioned.
	Index int
	// PublishedMessages is msgInCounter: messages published since the topic was loaded.
	PublishedMessages int64
	// AddedEntries is entriesAddedCounter: entries (batches) written since the topic was loaded; nil when slim.
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
	// DelayedMessages is msgDelayed: messages whose delay has not passed, as far as the dispatcher has read.
	DelayedMessages int64
	// UnackedMessages is unackedMessages: dispatched and not acknowledged; always 0 for Exclusive and Failover.
	UnackedMessages int64
	// DeliveredMessages is msgOutCounter: messages sent to consumers since the topic was loaded, redeliveries included.
	DeliveredMessages int64
	// Blocked is blockedSubscriptionOnUnackedMsgs: dispatch has stopped until messages are acknowledged.
	Blocked bool
	// Consumers connected to the partition; empty when slim.
	Consumers []ConsumerSample
}

// ConsumerSample is one consumer of a subscription on one partition.
type ConsumerSample struct {
	// ID tells consumers apart across partitions and topics: a Function's instance id (t/n/name#3) where the consumer
	// says it, else the consumer's name.
	ID string
	// MeanBatch is avgMessagesPerEntry, a rough recent mean; 0 before the first dispatch.
	MeanBatch int64
}
