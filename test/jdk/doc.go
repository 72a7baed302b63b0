// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package jdk finds the Java development kit and the Maven that the real Pulsar of tests, demo and benchmarks needs.
//
// Floor 3, used by test/broker and test/replica. It looks at files only: it starts nothing, downloads nothing and
// installs nothing; what is missing is an error that says what to install.
package jdk
