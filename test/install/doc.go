// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package install tests deploy/chart as users have it: Helm installs it on a real control plane, and test/node runs its
// pods from the files of the images.
//
// Floor 3. Pulsar, Function Mesh and load are those of test/stage. docs/architecture.md says what a node of a real
// cluster does besides.
//
// testdata/chart-first.tgz is the package of the chart as it was first, from which users upgrade: it stays as it is.
package install
