// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden compares what tests of benchmarks got with files under testdata.
//
// Floor 3, used by tests.
package golden
