// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube is how the programs reach the API server of Kubernetes, which caches they have, and where the Lease of
// the decision maker is. A Fence keeps a holder that stood still from writing after its Lease has expired.
//
// Floor 3, part of the programs. It starts nothing.
package kube
