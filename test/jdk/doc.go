// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package jdk finds the Java development kit and the Maven for the real Pulsar of tests, demo and benchmarks.
//
// Layer 3, used by test/broker and test/replica. It only reads files; the error for a missing program names what to
// install.
package jdk
