// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver and
// kube-controller-manager with the real HPA, StatefulSet, garbage collection and namespace controllers, on 127.0.0.1,
// without container runtime, kubelet, scheduler and cluster network. Pods therefore stay Pending. Metrics with an
// AverageValue target need no pods, and the aggregator reaches a metrics API on this machine through a Service of type
// ExternalName.
//
// Layer 3, used by end-to-end tests, the demo and bench. Package binaries builds the servers. The package connects only
// to clusters that it started, and a cluster ends with the process that started it.
package cluster
