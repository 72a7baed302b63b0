// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package reader waits for the first message of topics, with Pulsar's binary protocol.
//
// Layer 2, an edge. Its caller knows which broker owns a topic, whether that host is allowed, and the credentials. This
// package sends nothing to any other address, which is why Pulsar's Go client, which follows lookups on its own, cannot
// do its work. It also keeps no payload and creates no topic.
//
//	subscribe (not durable, from the latest message, only if the topic exists) -> 1 permit -> message -> close
//
// Readers with the same broker and credentials share a connection, which ends with its last reader.
package reader
