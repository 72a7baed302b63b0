// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command local runs a cluster on this machine until its standard input ends: a real Kubernetes control plane, a real
// Pulsar broker, the adapter and, with -keda, KEDA. It prints one line of JSON that says how to reach them. Functions
// of Function Mesh run as Pulsar consumers in its process.
//
// Floor 3, what `kubectl pap bench run --local` runs in a checkout. It knows no scenario.
package main
