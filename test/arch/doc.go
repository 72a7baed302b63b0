// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package arch holds the test that fails when a package knows what its layer may not know.
//
// Layer 3: it reads the import graph with `go list` and nothing else.
package arch
