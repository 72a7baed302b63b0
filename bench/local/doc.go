// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command local runs a cluster on this machine until its standard input ends: a real Kubernetes control plane, a real
// Pulsar broker, the adapter and, with -keda, KEDA. It prints one line of JSON with their addresses. Functions of
// Function Mesh run as Pulsar consumers in its process. With -outages a proxy stands before Pulsar's admin service.
//
// Layer 3, run by `kubectl pap bench run --local` in a checkout. It knows no scenario.
package main
