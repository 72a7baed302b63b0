// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command poll measures the cost of keeping the state of 1,000, 10,000 and 100,000 topic-partitions fresh, compared
// with one complete read for each trigger, as KEDA's built-in pulsar scaler does.
//
// It runs three processes: a local broker that responds like Pulsar (the state of each partition is a recorded response
// of 4.0.8 with two consumers), and, one after the other, the two contenders, which have the same poll interval and so
// the same freshness if they keep up:
//
//	ours         poll.Poller, backlog.Store and backlog/pulsar as the adapter runs them
//	per_trigger  a request for each trigger with Pulsar's default parameters, the response read and decoded whole
//
// CPU and memory are of the contender's process alone; the broker counts requests and bytes; freshness is the age of
// the contender's data, over all topics at many moments.
//
// Layer 3. It never runs in the product, and makes no claim about the load on a broker: it measures the client.
package main
