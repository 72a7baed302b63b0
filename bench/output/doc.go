// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package output writes what benchmarks measured: tables for people, JSON and images as files.
//
// Floor 3, used by benchmarks. It knows numbers and cells; what they mean is its caller's.
package output
