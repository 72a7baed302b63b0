// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package ha tests what becomes of the answers, of the replicas and of what was learned when a replica of the adapter
// or the API server goes and comes back, under load: two adapters as processes, a real control plane, a real Pulsar.
//
// Floor 3. It is a package of its own because its tests disturb everybody on their stage. They run one after the other,
// each on the scene that the one before it has left in order.
package ha
