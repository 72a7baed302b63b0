// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package backlog holds what is known about Pulsar subscriptions: which are tracked, what was measured of each and
// when, and the readings that follow from it.
//
// # From an answer to a reading
//
// A subscription is tracked by owners (Store.Track), which makes its topics, the namespaces of its patterns and its
// workload jobs of the poller (Feed.Changes). When a topic is due, Feed.NextRequest says what to request, a Source
// (package poll; backlog/pulsar) turns the HTTP answer into a TopicSample, Feed.Doubt compares that with what is known,
// and Store.Record takes it in:
//
//	HTTP answer -> TopicSample -> Feed.Doubt -> none, or a second answer and Feed.Settle -> Store.Record
//	  topicState.record        distinguished from a topic that was recreated or reloaded, by counters that fell
//	    batches.record         messages per entry, from the growth of two counters
//	    topicPartitions        what was published on each partition, for rates
//	    subscriptionState      for each tracked subscription:
//	      consumers.observe      who consumes, what they hold and which permits are left
//	      partitions.record      what was delivered and finished on each partition
//	      history.add            one point: the sum over the partitions, kept for the rate window
//	Store.Read -> Reading
//	  inputs                   the topics that count and are known, and what is missing; or why nothing is known
//	  topicState.read          the last point, rates over the window, what the consumers hold
//	  Reading.plus             the sum over topics: as old as the oldest, a lower bound where a part is unknown
//	  readInstances            what the instances count themselves
//
// Every number of a Reading is a Measurement: known with its time, or unknown with one of the reasons of errors.go.
//
// # Patterns
//
// A subscription may follow topics by patterns. Their namespaces are listed every 30 s, and what matches is tracked
// like topics that are named, as it comes and goes; a topic that turns out to be missing brings the next listing
// forward. A matched topic that lacks the subscription, or does not exist, counts for nothing, since clients and
// listings are late.
//
// # Parts
//
// A topic that cannot be read, or a new one for the one fetch that it takes, leaves a sum that looks like less work
// than there is: Reading.Coverage says so, and the sums are lower bounds. Measurement.Value fails on those, so that
// code which does not care takes them for unknown; Measurement.Least returns them to what adds replicas. A partition
// that an answer lacks makes its topic such a part, and the positions of its counters stay, so that what comes
// meanwhile is counted over the time that it took. A rate needs two answers about a partition: one that was loaded
// again goes on at its last rate for one answer, one without messages is quiet, and a new one is a lower bound
// (pairs.go).
//
// # Bulk answers
//
// A broker can answer for all its topics at once (broker-stats/topics), up to a minute late, and only for those that
// are loaded: a topic with backlog and no client is absent (apache/pulsar#16284), so a function at zero replicas would
// never wake up from them. Therefore nothing in a bulk answer becomes a value. It confirms: when it has all partitions
// of a topic, with the published counters that were read from the topic itself, no backlog then and now in any tracked
// subscription, and a consumer for each on every partition, then the last reading holds as of the bulk answer, and the
// topic's own fetch may wait up to QuietInterval instead of Interval. Anything else, absence included, changes nothing
// but that a topic which waited is fetched at once. Since readings grow older than usual meanwhile, which holds
// decisions up, a topic waits only after it was quiet for QuietInterval: by then there is nothing left to decide. The
// price is that a topic wakes up as late as bulk answers are: their interval and age.
//
// Floor 0: it knows the standard library alone. It never speaks to Pulsar or Kubernetes, never turns "unknown" into a
// number, and has no clock and no goroutine: package poll has both.
package backlog
