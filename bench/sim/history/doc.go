// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package history reads the history of a Function from Prometheus: its arrivals, its backlog, its replicas, and their
// capacity and start time as far as the series show them.
//
//	client.go    the HTTP client: credentials, limits, retries
//	query.go     range queries in parts
//	series.go    the expressions, with values of labels escaped
//	estimate.go  capacity and start time, from the same series
//	history.go   all of it, as a trace
//
// Layer 3. It never guesses: a signal without samples is unknown, with the series that were queried.
package history
