// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package instance reads the counters of function, sink and source instances from the metrics port that each of them
// serves: it implements poll.InstanceSource.
//
// Layer 2, an edge: it uses package backlog and one outside system, the metrics of Pulsar's Java, Python and Go
// instances. Addresses returns the instances from the cache. It computes no rate, sends no credentials, follows no
// redirect, uses no proxy and keeps no connection open: a connection for each instance would hold a thread or a file on
// both sides between two requests, and break when the pod is deleted.
//
// Only the needed series are requested, with name[]: this reduces a Java instance's 80 KB to 2.4 KB, whatever user code
// adds. Java (from the Prometheus client 0.5) and Python support it, Go sends everything.
//
// An instance that seems to work on several messages at once is scraped twice: its messages in flight
// are then correct even if its counters were not read at the same time.
//
// There is no other retry. An instance that does not answer counts as silent and is scraped again at the next poll,
// seconds later, and after two timeouts in a row later and later; a retry would only double the cost
// of a dead instance.
//
// The series, with the measured differences (Pulsar 4.0.8, 4.2.4 and 5.0.0-M1, Go's of about 3.2):
//
//	pulsar_function_received_total                 Received
//	pulsar_function_processed_successfully_total   Processed
//	pulsar_{sink,source}_written_total             Processed; includes records that the sink fails later
//	pulsar_function_user_exceptions_total          UserExceptions
//	pulsar_{sink,source}_*_exceptions_total        UserExceptions, those of the connector's own side
//	pulsar_*_system_exceptions_total               SystemExceptions
//	pulsar_function_process_latency_ms_count       Calls; sinks and sources have none
//	pulsar_function_process_latency_ms_sum         BusyTime, in ms for all three languages
//	process_start_time_seconds                     Began; Go has none
//
// Series are identified by name only: the totals are counters in Java and Python and gauges in Go, so the type does not
// help. A name without _total means the same. The 1-minute series, which restart at 0 each minute, *_created and user
// metrics are skipped. So is last_invocation, which is not needed and which is ns in Go and ms elsewhere.
//
// FailedCallsCounted is true if the latency has quantiles: Java's has four from the start (NaN while idle), Python's
// and Go's have none, and of the three only Java counts failed calls.
//
// All of the counters exist with 0 before the first message. So a missing series means that this is not an instance: it
// is an error and never 0.
//
// A scanner of our own reads the text line by line. Package expfmt of Prometheus would keep every user metric in
// memory, whatever their number, and refuse the whole text for one bad line of user code.
package instance
