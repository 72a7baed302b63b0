// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package load publishes messages to a topic of a test's broker by the shapes and the publisher of
// bench/load.
//
// Layer 3, used by the tests with real parts, by bench and by the demo. After any time the number of messages is the
// integral of the rate, also when the machine or the broker stalled in between. It creates no topic, prints nothing
// and reads nothing back.
package load
