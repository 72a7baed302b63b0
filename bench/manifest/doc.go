// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package manifest reads an AutoscalingPolicy from a file as the API server does: unknown fields are errors, defaults
// are set, and the rules of the CustomResourceDefinition hold.
//
// Layer 3. It needs no cluster.
package manifest
