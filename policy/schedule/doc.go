// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package schedule evaluates the schedules of a policy: the limits of replicas at a time.
//
// Layer 1: it knows the API and package policy. It never reads a clock, speaks to a server, logs, or starts a
// goroutine.
package schedule
