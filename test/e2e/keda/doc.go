// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda tests the whole way through the real KEDA: its operator and metrics server, our scaler and adapter, a
// real Kubernetes control plane, a real broker, and Functions whose replicas consume. It has tests only.
//
// Floor 3. What does not need KEDA is tested in package e2e.
package keda
