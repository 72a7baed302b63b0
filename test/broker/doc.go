// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package broker runs a real Apache Pulsar standalone broker with its function worker: the jars come from Maven Central
// once, the broker runs on a JDK of this machine, needs no container and listens on 127.0.0.1 only.
//
// Floor 3, used by the tests with real parts, by bench and by the demo. It starts, pauses, kills and restarts the
// broker and calls its admin API for the arrangement of a test; it never reads statistics for the product, never
// decides, and leaves nothing running and nothing on disk but the cached jars.
package broker
