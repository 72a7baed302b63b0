// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package ha tests responses, replicas and learned capacity while a replica of the adapter or the API server fails and
// recovers under load: two adapters as processes, a real control plane, a real Pulsar.
//
// Layer 3. It is a separate package because its tests disturb their whole stage. They run one after another, each on
// the restored scene of the previous one.
package ha
