// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command poll measures what it costs to keep fresh what Pulsar knows about 1,000, 10,000 and 100,000 topic-partitions,
// beside what it costs to read each trigger's topic whole, as KEDA's built-in pulsar scaler does.
//
// It runs three processes: a local broker that answers as Pulsar does (the state of each partition is a real answer of
// 4.0.8 with two consumers), and, one after the other, the two contenders, which have the same interval between two
// looks at a topic and so the same freshness where they keep up:
//
//	ours         poll.Poller, backlog.Store and backlog/pulsar as the adapter runs them
//	per_trigger  a request for each trigger with Pulsar's default parameters, the answer read and decoded whole
//
// CPU and memory are those of the contender's process alone; requests and bytes are counted by the broker; freshness is
// the age of what the contender knows, over all topics at many moments.
//
// Floor 3. It never runs in the product, and it never claims what the broker would save: it measures the client.
package main
