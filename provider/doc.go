// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package provider serves the Kubernetes custom metrics API, and with a flag the external one: the decision for an
// AutoscalingPolicy, and the signals of it or of a Function, Sink, Source or StatefulSet, from the cache.
//
// Layer 2, an edge: it imports api/v1alpha1, backlog and policy, and talks to one outside system, the metrics APIs. It
// never calls Pulsar or Kubernetes, never decides, and never turns "unknown" into a number: an unknown value is an
// error.
//
//	request -> query (which metric of which kind) -> decision or signal -> MetricValue or StatusError
//
// A reading, from an HTTP response to a served metric; package backlog explains its first half:
//
//	poll.Poller.Run            takes a due topic and calls its Source
//	pulsar.Source.Fetch        one request to the broker, decoded: a backlog.TopicSample
//	backlog.Store.Record       adds the sample to the topic's window: counters, rates, batch size
//	informer.Signals.Read      finds the subscription of the requested object, and has it tracked
//	backlog.Store.Read         sums up the topics and partitions of the subscription: a backlog.Reading
//	CustomMetrics.value        selects the metric of the Reading, with the time of the measurement
//
// The first three run in the poller, the last three in the request, which sends nothing over the network.
//
// External metrics are the same numbers, for the object that the selector names.
//
// A response takes at most 250 ms (package response): the HorizontalPodAutoscaler controller requests with 5 workers
// for the whole cluster and no timeout of its own, so a slow response delays all autoscalers.
//
// The text of an error is user interface: the HorizontalPodAutoscaler's condition and event quote it. No error has
// Retry-After, because the HorizontalPodAutoscaler's client would sleep; see statusError.
//
// Served numbers are from 0 to 9e12, the largest with thousandths that a float64 represents exactly: a
// HorizontalPodAutoscaler reads thousandths as int64, overflows silently above, and takes a negative number for
// minReplicas or maxReplicas.
package provider
