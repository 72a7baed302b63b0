// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package guide reads the commands of a page of docs: the tests that run them, with recorders in place of programs
// (test/chart) or with the programs (test/install), run the same text.
//
// Layer 3.
package guide
