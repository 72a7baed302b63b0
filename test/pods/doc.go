// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package pods is the kubelet of the control planes of test/cluster. A Runner watches pods, starts what its Config.Find
// returns for a pod, restarts it with a back-off, probes it, ends it within the grace period, writes the status that a
// kubelet writes, and keeps the history of what ran. With a node name it also binds pods to that node.
//
// Layer 3. What a pod runs is chosen by others: consumers in this process or function instances (test/mesh), processes
// of Pulsar's function worker (test/workerpods), or containers from images (test/node).
package pods
