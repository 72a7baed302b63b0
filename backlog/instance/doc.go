// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package instance reads what the instances of functions, sinks and sources count themselves, from the metrics port
// that each of them serves: it implements poll.InstanceSource.
//
// Floor 2, an edge: it knows package backlog and one outside system, the metrics of Pulsar's Java, Python and Go
// instances. Addresses knows where the instances are, from the cache. It computes no rate, sends no credentials,
// follows no redirect, uses no proxy and keeps no connection open: one for each instance would hold a thread or a file
// on both sides between two requests, and break when the pod goes.
//
// Only the series that are read are requested, with name[]: of a Java instance's 80 KB that leaves 2.4 KB, whatever
// user code adds. Java and Python obey that, Go sends everything.
//
// An instance that seems to works on several messages at once is scraped twice, see inflight.go: what it says then of
// messages in flight is true even if its counters were not read at one time.
//
// Otherwise nothing is tried again. An instance that does not answer counts as silent and is scraped again at the next
// poll, which is seconds away; a retry would only double what a dead one costs.
//
// What is read, with the differences that were measured (Pulsar 4.0.8, 4.2.4 and 5.0.0-M1, Go's of about 3.2):
//
//	pulsar_function_received_total                 Received
//	pulsar_function_processed_successfully_total   Processed
//	pulsar_{sink,source}_written_total             Processed; a record that the sink fails later is among them
//	pulsar_function_user_exceptions_total          UserExceptions
//	pulsar_{sink,source}_*_exceptions_total        UserExceptions, those of the connector's own side
//	pulsar_*_system_exceptions_total               SystemExceptions
//	pulsar_function_process_latency_ms_count       Calls; sinks and sources have none
//	pulsar_function_process_latency_ms_sum         BusyTime, in ms for all three languages
//
// Series are known by name alone: the totals are counters in Java and Python and gauges in Go, so the type says
// nothing. A name without _total means the same. The 1-minute series, which restart at 0 each minute, *_created and
// user metrics are skipped. So is last_invocation, which nothing needs and which is ns in Go and ms elsewhere.
//
// FailedCallsCounted is true when the latency has quantiles: Java's has four from the start (NaN while idle), Python's
// and Go's have none, and of the three only Java counts calls that failed.
//
// All of these series exist with 0 before the first message. So one that is missing means that this is no instance, and
// is an error and never 0.
//
// The text is read line by line by a scanner of our own. Package expfmt of Prometheus would hold every user metric in
// memory, whatever their number, and give up on the whole text for one bad line of user code.
//
// Metrics:
//
//	pulsar_autoscaler_instance_scrapes_total{result}       requests
//	pulsar_autoscaler_instance_scrape_duration_seconds     from connecting to the decoded answer
//
// result is ok, unreachable, unavailable, forbidden, protocol or canceled.
package instance
