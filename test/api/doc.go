// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package api tests the AutoscalingPolicy's definition on the real API server: rules and defaults, the scale
// subresource, kubectl's texts and table, the examples, and the policies of the docs.
//
// Layer 3. It has its own control plane, which takes 5 s to start, without Pulsar and without the adapter: only the
// tests write.
package api
