// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package replica runs one replica of a Pulsar Function outside a cluster, with a known cost per message, and tells
// when each message was done. There are two kinds: Java is Pulsar's own function instance as a local process, Light is
// a real Pulsar consumer in this process, for many replicas on a small machine and for faults.
//
// Floor 3, used by the tests with real parts, by bench and by the demo. It starts and stops what it is told to: it
// knows no replica count, no pods and nothing of the product. Create topics before replicas: a broker that allows it
// makes a missing one by itself, without partitions.
package replica
