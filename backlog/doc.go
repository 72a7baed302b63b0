// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package backlog holds what is known about Pulsar subscriptions: which are tracked, what was measured of each and
// when, and the readings that follow from it. A Source fetches a topic, the Store keeps its recent history, the Poller
// decides when to fetch, and Read answers for a subscription over all its topics and partitions.
//
// # Patterns
//
// A subscription may follow topics by patterns. Their namespaces are listed every 30 s, and what matches is tracked
// like topics that are named, as it comes and goes; a topic that turns out to be missing brings the next listing
// forward. A matched topic that lacks the subscription, or does not exist, counts for nothing, since clients and
// listings are late; one that cannot be read makes the reading unknown, and so does a new one for the one fetch that it
// takes, since a sum without it would look like less work than there is.
//
// # Bulk answers
//
// A broker can tell of all its topics at once (broker-stats/topics), up to a minute late, and
// only of those that are loaded: a topic with backlog and no client is absent (apache/pulsar#16284), so a function at
// zero replicas would never wake up from them. Therefore nothing in a bulk answer becomes a value. It confirms: when it
// has all partitions of a topic, with the published counters that we read ourselves, no backlog then and now in any
// tracked subscription, and a consumer for each on every partition, then the last reading holds as of the bulk answer,
// and the topic's own fetch may wait up to QuietInterval instead of Interval. Anything else, absence included, changes
// nothing but that a topic which waited is fetched at once. Since readings grow older than usual meanwhile, which holds
// decisions up, a topic waits only after it was quiet for QuietInterval: by then there is nothing left to decide. The
// price is that a topic wakes up as late as bulk answers are: their interval and age.
//
// Floor 0: it knows the standard library and errgroup. It never speaks to Pulsar or Kubernetes itself, never turns
// "unknown" into a number, and keeps clocks and goroutines to the Poller alone.
package backlog
