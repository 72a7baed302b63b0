// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package history reads out of Prometheus what a Function went through: its arrivals, its backlog, the replicas that
// ran, and what one of them processes and takes to start, as far as the series tell.
//
//	client.go    the HTTP client: credentials, limits, retries
//	query.go     range queries in parts
//	series.go    the expressions, with values of labels escaped
//	estimate.go  capacity and start time, from the same series
//	history.go   all of it, as a trace
//
// Floor 3. It never guesses: a signal without samples is unknown, and says which series it looked for.
package history
