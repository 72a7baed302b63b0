// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package output writes the results of benchmarks: tables for people, JSON and images as files.
//
// Layer 3, used by benchmarks. It knows numbers and cells; the caller gives them a meaning.
package output
