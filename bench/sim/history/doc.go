// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package history reads from Prometheus what happened: the arrivals, the backlog and the replicas of a Function, with
// their capacity and start time as far as the series show them, the outcomes of policies, and what was known of one at
// a time.
//
//	client.go    the HTTP client: credentials, limits, retries
//	query.go     range queries in parts
//	series.go    the expressions, with values of labels escaped
//	estimate.go  capacity and start time, from the same series
//	history.go   all of it, as a trace
//	outcome.go   late time and replica-hours of policies
//	course.go    the same by day, and of all policies by step
//	moment.go    the series of a policy at a time
//
// Layer 3. It never guesses: a signal without samples is unknown, with the series that were queried.
package history
