// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package outcome reports what policies did in a period: how much of the time messages met the latency objective, the
// replica-hours, and what scaling saved.
//
//	report.go  the rows: policies, or groups of them
//	write.go   the same as text and CSV
//	page.go    the same as a page, with charts
//
// Layer 3. Package bench/sim/history reads the outcomes from Prometheus. What is unknown is absent, never 0, and the
// time without data is a number of its own.
package outcome
