// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package backlog holds what is known about Pulsar subscriptions: which are tracked, what was measured and when, and
// the readings that follow from it.
//
// # From an answer to a reading
//
// Owners track a subscription (Store.Track). Its topics, the namespaces of its patterns and its workload become jobs of
// the poller (Feed.Changes). When a topic is due, Feed.NextRequest returns what to request, a Source (package poll;
// backlog/pulsar) converts the HTTP answer to a TopicSample, Feed.CheckPlausible compares it with earlier answers, and
// Store.Record records it:
//
//	HTTP answer -> TopicSample -> Feed.CheckPlausible -> maybe a second one, Feed.CheckSecond -> Store.Record
//	  topicState.record        detects a recreated or reloaded topic by counters that fell
//	    batches.record         messages per entry, from the growth of two counters
//	    topicPartitions        messages published on each partition, for rates
//	    subscriptionState      for each tracked subscription:
//	      consumers.observe      the consumers and their messages
//	      partitions.record      messages delivered and finished on each partition
//	      history.add            one point: the sum over the partitions, kept for the rate window
//	Store.Read -> Reading
//	  inputs                   the topics that count and are known, and the missing ones; or why nothing is known
//	  topicState.read          the last point, rates over the window, messages held by consumers
//	  Reading.plus             the sum over topics: as old as the oldest, a lower bound where a part is unknown
//	  readInstances            the counters of the instances
//
// Every number of a Reading is a Measurement: known with its time, or unknown with one of the reasons of errors.go.
//
// # Patterns
//
// A subscription may follow topics by patterns. Their namespaces are listed every 30 s, and matching topics are tracked
// like named ones while they exist; a missing topic triggers the next listing early. A matched topic that lacks the
// subscription, or does not exist, counts for nothing, since clients and listings are late.
//
// # Parts
//
// A topic that cannot be read, or a new one until its first answer, makes a sum look like less work than there is.
// Reading.Coverage reports it, and the sums are lower bounds. Measurement.Value fails on a lower bound, so that it
// counts as unknown by default; Measurement.LowerBound returns it for code that adds replicas. If an answer lacks a
// partition, its topic is such a part. The positions of the partition's counters stay, so that messages in the gap
// count over the whole gap. A rate needs two answers about a partition: a partition that was loaded again keeps its
// last rate for one answer, one without messages is quiet, and a new one is a lower bound (window.go).
//
// Layer 0: it uses only the standard library. It never speaks to Pulsar or Kubernetes, never turns "unknown" into a
// number, and has no clock and no goroutine: package poll has both.
package backlog
