// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics exports the decisions of each policy, and their reasons, as Prometheus series.
//
// Layer 2, an edge: it imports package policy/plan and Prometheus. It decides nothing, and keeps only the last Record
// of each policy.
//
// A Record is created at the end of each reconcile. The Exporter reads all of them at each scrape, on the replica that
// decides: the others have none. An unknown value has no sample, never 0 or NaN. The table in series.go and full.go has
// every series.
package metrics
