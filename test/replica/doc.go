// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package replica runs one replica of a Pulsar Function outside a cluster, at a known cost per message, and reports
// when each message was done. Java runs Pulsar's own function instance as a local process. Light is a Pulsar consumer
// in this process, for many replicas on a small machine and for faults.
//
// Layer 3, used by the tests with real parts, by bench and by the demo. The caller decides how many replicas run.
// Create topics before replicas: a broker with auto-creation creates a missing topic without partitions.
package replica
