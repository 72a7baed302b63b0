// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube connects the programs to the Kubernetes API server, and configures their caches and the Lease of the
// decision maker. A Fence stops the writes of a holder that was paused for longer than its Lease.
//
// Chosen namespaces that refuse to be read are left out (namespaces.go).
//
// Run runs a manager, and ends also while the manager reads its caches.
//
// Layer 3, part of the programs.
package kube
