// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package model models a Function's replicas between a Pulsar subscription and a controller, second by second, so that
// controllers can be compared on hours of load in a fraction of a second.
//
// The input is a Scenario and a seed. A controller sees the samples that Pulsar and the instances would have returned
// (backlog.TopicSample, backlog.InstancesSample), so that the product's own Store and policy run on it unchanged. The
// output is a Score over every single message. Arrivals have their own random numbers, so all controllers get the same
// load.
//
// Layer 3. It never decides about replicas, and never shows a controller what a real one could not see.
package model
