// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package backlog holds what is known about Pulsar subscriptions: which are tracked, what was measured of each and
// when, and the readings that follow from it. A Source fetches a topic, the Store keeps its recent history, the Poller
// decides when to fetch, and Read answers for a subscription over all its topics and partitions.
//
// Floor 0: it knows the standard library and errgroup. It never speaks to Pulsar or Kubernetes itself, never turns
// "unknown" into a number, and keeps clocks and goroutines to the Poller alone.
package backlog
