// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package helm runs the pinned helm on the chart in deploy/chart, for tests and for generated manifests.
//
// Layer 3. The tools are those of the module tools/helm, with kubectl. Go builds each on first use, which takes
// minutes, and caches it.
package helm
