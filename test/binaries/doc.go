// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package binaries builds the servers that tests run beside the product, of the modules in test/binaries/build: the
// control plane (etcd, kube-apiserver and kube-controller-manager), KEDA and Prometheus. Each is built once and cached,
// and our own programs are built with the same flags, so that shared packages are compiled once.
//
// Layer 3. It imports no client of Kubernetes, since a new machine compiles it first. It starts none of the servers.
package binaries
