// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package run runs a scenario on a cluster: it creates a namespace with a Function, topics and an autoscaler for each
// contender, publishes the load, samples replicas and results, cleans up, and compares the measurements with the limits
// of the scenario.
//
// Everything is in one Kubernetes namespace. The names of the topics follow from it, so that an interrupted clean-up
// can be resumed. StartLocal starts a cluster on this machine in place of the user's.
//
// Layer 3, used by the plugin. It calls the API server and Pulsar, and neither the adapter nor KEDA.
package run
