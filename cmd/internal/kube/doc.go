// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube is how the programs reach the API server of Kubernetes, and where the Lease of the decision maker is.
//
// Floor 3, part of the programs. It reads files and never calls the API server.
package kube
