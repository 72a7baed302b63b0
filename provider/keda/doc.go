// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda is an external scaler for KEDA (externalscaler.ExternalScaler over gRPC): it serves the decision of an
// AutoscalingPolicy, or the signals of a function or a subscription without a policy, from the cache.
//
// Layer 2, an edge: it imports api/v1alpha1, backlog and policy, and talks to one outside system, KEDA. It never calls
// Pulsar or Kubernetes, and never turns "unknown" into a number: KEDA takes 0 for inactive and, in a race of its own,
// an error for the same, so the last known response is held for a while before it becomes an error.
//
//	metadata -> Trigger -> observed -> Sample (metric, target, value, activity) -> response, or statusError
//
// The metadata of a trigger has one of
//
//	policy: resize                         the AutoscalingPolicy of the ScaledObject's namespace: its decision
//	target: Function/resize                a Function, Sink, Source or StatefulSet of that namespace
//	function: public/default/resize        a function of the function worker of a connection; sink: likewise
//	topic: orders, subscription: resize    one subscription on one topic, or on several with commas between them
//
// and, except for policy, its threshold: messagesPerReplica, messagesPerSecondPerReplica or targetPercent, the divisor
// of KEDA's HorizontalPodAutoscaler. Only policies have a measured capacity, from the one decision maker.
package keda
