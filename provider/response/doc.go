// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package response is shared by the metrics API and the external scaler: reasons why there is no number, with texts
// that fit an event; limits on concurrent requests and their time; the range of served numbers;
// and the interfaces to read decisions.
//
// Layer 2, part of the edges that import it: it imports api/v1alpha1, backlog and policy, and neither the metrics
// API nor KEDA, each of which maps a Reason to a status of its own.
package response
