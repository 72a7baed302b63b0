// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package poll decides when to fetch what a backlog.Store tracks, and fetches it: each topic once an interval, however
// many owners track it; and at their own paces the listings of the namespaces that patterns need, the instances of
// workloads, and bulk answers.
//
//	tracked -> due -> fetching -> recorded or failed -> due again an interval after it was due, or later after failures
//
// Floor 0, and the only package there with a context, a clock and goroutines. It knows package backlog, the standard
// library and errgroup, and fetches through the interfaces of source.go alone; what an answer means is the Store's to
// know.
package poll
