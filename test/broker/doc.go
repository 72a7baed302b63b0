// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package broker runs a real Apache Pulsar standalone broker with its function worker: Maven Central has the jars, the
// broker runs on a JDK of this machine, needs no container and listens only on 127.0.0.1.
//
// Layer 3, used by the tests with real parts, by bench and by the demo. It starts, pauses, kills and restarts the
// broker, and calls its admin API to set up a test. It reads no statistics for the product, and leaves only the cached
// jars.
package broker
