// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package poll fetches what a backlog.Store tracks: each topic once an interval, less often while all its owners are
// at rest, and more often while one needs it quickly. The listings of the namespaces that patterns need and the
// instances of workloads have intervals of their own.
//
//	tracked -> due -> fetching -> recorded or failed -> due again an interval after it was due, or later after failures
//
// Due jobs stand in a line for each admin URL, and in one for all workloads. There the Kubernetes namespaces that ask
// for them take turns, see line.go: a topic that two of them need is fetched in the turn that comes first.
//
// Layer 0, and the only package there with a context, a clock and goroutines. It uses package backlog, the standard
// library and errgroup, and fetches through the interfaces of its Config. The Store interprets the answers.
package poll
