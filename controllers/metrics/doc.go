// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics shows what was decided for each policy, and why, as series of Prometheus.
//
// Floor 2, an edge: it knows what package policy/plan observes and reports, and Prometheus. It decides nothing, and
// keeps nothing beyond the last Record of each policy.
//
// A Record is made at the end of each reconcile. The Collector reads all of them when it is scraped, on the replica
// that decides: the others have none. What is unknown has no sample, never 0 or NaN. The table in series.go and full.go
// has every series.
package metrics
