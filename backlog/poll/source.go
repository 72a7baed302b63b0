// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Source fetches the current state of a topic.
//
// An answer that lacks some partitions reports this, and one that lacks all is backlog.ErrPartial. Every error wraps
// one of the reasons of package backlog and names the fix.
type Source interface {
	Fetch(ctx context.Context, topic backlog.Topic, request backlog.Request) (backlog.TopicSample, error)
	// AddEntries adds the available entry counters to a sample of the topic that has none.
	AddEntries(ctx context.Context, topic backlog.Topic, sample backlog.TopicSample) backlog.TopicSample
}

// Lister lists the topics of a namespace, for subscriptions with patterns: it calls add with their complete names
// without partition suffixes, in no order, and perhaps several times. They include partitioned topics without a loaded
// partition, and exclude system topics. After an error some are missing.
type Lister interface {
	List(ctx context.Context, namespace backlog.Namespace, add func(topic string)) error
}

// Watcher waits for the next message of a partition, without creating the topic or a durable subscription.
//
// Watch calls watching once it sees every message from then on. It returns nil after the first one, and also when it
// cannot watch any longer or the context has ended. An error means that it never watched.
type Watcher interface {
	Watch(ctx context.Context, partition backlog.Topic, watching func()) error
}

// InstanceSource reads the counters of the instances of a workload.
type InstanceSource interface {
	FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error)
}
