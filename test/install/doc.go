// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package install tests deploy/chart as users install it: with Helm, on a real control plane. test/node runs its pods
// from the files of the images.
//
// Layer 3. Pulsar, Function Mesh and load come from test/stage. docs/architecture.md lists what a real node does in
// addition.
//
// testdata/chart-first.tgz is the package of the first version of the chart, from which users upgrade. It never
// changes.
package install
