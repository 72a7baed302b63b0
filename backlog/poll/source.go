// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Source fetches the present state of a topic.
//
// An answer that lacks some partitions says so, and one that lacks all is backlog.ErrPartial. Every error wraps one of
// the reasons of package backlog and names what the user can do.
type Source interface {
	Fetch(ctx context.Context, topic backlog.Topic, request backlog.Request) (backlog.TopicSample, error)
	// AddEntries adds the entry counters to a sample of the topic that came without them, as far as they can be had.
	AddEntries(ctx context.Context, topic backlog.Topic, sample backlog.TopicSample) backlog.TopicSample
}

// Lister lists the topics of a namespace, for subscriptions with patterns: complete names without partition suffixes,
// each once, in no order. Partitioned topics of which no partition was ever loaded are among them, system topics are
// not.
type Lister interface {
	List(ctx context.Context, namespace backlog.Namespace) ([]string, error)
}

// InstanceSource reads what the instances of a workload count themselves.
type InstanceSource interface {
	FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error)
}

// BulkSource reads the rough state of many topics at once. What it does not mention is unknown, never 0: brokers leave
// out topics that are not loaded.
type BulkSource interface {
	FetchBulk(ctx context.Context, cluster backlog.Cluster) (backlog.BulkSample, error)
}
