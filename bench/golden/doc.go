// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package golden compares results of tests with files under testdata.
//
// Layer 3, used by tests.
package golden
