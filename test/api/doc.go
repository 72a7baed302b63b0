// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package api tests what the real API server makes of the AutoscalingPolicy's definition: that it takes it at all, its
// rules and defaults, the scale subresource, the words that people read about fields, and the table that they see; and
// that it takes the examples, and the policies of the docs.
//
// Floor 3. It has a control plane of its own, 5 s to start, with neither Pulsar nor the adapter: nobody but the tests
// writes.
package api
