// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package stage starts everything on this machine: a real Kubernetes control plane, a real Pulsar broker, package mesh
// in place of Function Mesh with its replicas, and the adapter as a process with only the permissions of its manifests.
// Tests add Functions with a topic, a load and a score each.
//
// Layer 3, used by the end-to-end tests, the demo and bench. It decides and asserts nothing: it sets up, and reports
// what happened.
package stage
