// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package stage sets the whole scene on this machine: a real Kubernetes control plane, a real Pulsar broker, the
// stand-in for Function Mesh with its replicas, and the adapter as a process of its own with the rights of its
// manifests and nothing more. Functions are put on it with a topic, a load and a score each.
//
// Floor 3, used by the end-to-end tests, the demo and bench. It decides nothing and asserts nothing: it arranges, and
// it tells what happened.
package stage
