// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a real Kubernetes control plane on this machine: etcd, kube-apiserver and
// kube-controller-manager with the real HPA, StatefulSet, garbage collection and namespace controllers, on 127.0.0.1,
// with no container runtime, no kubelet, no scheduler and no cluster network. Pods therefore stay Pending; metrics with
// an AverageValue target need none, and the aggregator reaches a metrics API on this machine through a Service of type
// ExternalName.
//
// Floor 3, used by end-to-end tests, the demo and bench. The binaries are built once per machine from their Go modules
// (test/cluster/build) and kept in the cache. It never touches a cluster that it did not start, and nothing of a
// cluster outlives the process that started it.
package cluster
