// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package keda tests scaling through the real KEDA: its operator and metrics server, our scaler and adapter, a real
// Kubernetes control plane, a real broker, and Functions with consuming replicas. It has tests only.
//
// Layer 3. Tests without KEDA are in package e2e.
package keda
