// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda runs the real KEDA, its operator and its metrics server, as processes of this machine beside a control
// plane of package cluster, with the flags of its manifests except where they need a pod.
//
// Layer 3, used by end-to-end tests and bench. The binaries are built once per machine from KEDA's Go module
// (test/binaries/build/keda) and cached. Without admission webhooks, invalid objects are accepted. It writes only the
// objects of KEDA's installation.
package keda
