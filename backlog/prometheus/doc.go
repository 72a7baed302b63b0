// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus reads the rough state of many topics from a Prometheus that scrapes the brokers anyway: it
// implements backlog.BulkSource.
//
// Floor 2, an edge: it knows package backlog and one outside system, the HTTP API of Prometheus and of what speaks like
// it (Thanos, Mimir, VictoriaMetrics). It never scrapes a broker, never takes a topic that is not mentioned for one
// without backlog, never decides anything, never follows a redirect, and never shows its token in an error or a metric.
//
// One FetchBulk is four instant queries at one evaluation time, of the series that a broker renders when it is scraped
// (metricsBufferResponse=true makes them up to a minute older):
//
//	pulsar_in_messages_total               messages published since the topic was loaded
//	pulsar_subscription_back_log           entries of the backlog
//	pulsar_subscription_consumers_count    consumers
//	min(timestamp(...))                    when the oldest of them was scraped
//
// Labels are read by name: topic, subscription, and partition where splitTopicAndPartitionLabelInPrometheus=true. A
// broker with exposeTopicLevelMetricsInPrometheus=false has no such series. Of several series for one thing, from a
// topic that moved or from two Prometheus that scrape the same, the largest value counts. A subscription that lacks one
// of the series, or has one that cannot be a count, is left out.
//
// All series of one cluster are in memory at the same time, about five times what the answer takes as JSON (300 bytes
// for each series): Config.MaxAnswerBytes bounds that.
//
// Metrics:
//
//	pulsar_autoscaler_prometheus_requests_total{result}           queries
//	pulsar_autoscaler_prometheus_request_duration_seconds         from sending to the decoded answer
//
// result is ok, unauthenticated, forbidden, unreachable, unavailable, protocol or canceled.
package prometheus
