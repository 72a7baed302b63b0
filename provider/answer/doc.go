// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package answer is what the metrics API and the external scaler have in common when they answer a request: why there
// is no number, in words that fit an event; how many requests are worked on at once and for how long; which numbers are
// served; how requests are counted; and who decides.
//
// Floor 2, part of the edges that import it: it knows packages api/v1alpha1, backlog and policy/plan, and neither the
// metrics API nor KEDA, each of which maps a Reason to a status of its own.
package answer
