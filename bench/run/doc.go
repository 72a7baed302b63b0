// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package run carries out a scenario on a cluster: it makes a namespace with a Function, topics and an autoscaler for
// each contender, publishes the load, watches replicas and results, cleans up, and compares what it measured with the
// limits of the scenario.
//
// All that it makes is in one Kubernetes namespace, which names the topics too, so that an interrupted clean-up can be
// resumed. StartLocal has a cluster on this machine instead of the user's.
//
// Floor 3, used by the plugin. It talks to the API server and to Pulsar, and to neither adapter nor KEDA.
package run
