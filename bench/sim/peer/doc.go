// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package peer holds the controllers that the simulator compares: what users run today, what other systems do, an
// oracle that knows the future, the plain form that every refinement has to beat, and ours, which is the product's own
// Store and policy.
//
// All are given the same handicaps or advantages, stated with each: peers that need a threshold are told the true
// capacity of a replica at the start, which no user knows.
//
// Floor 3. It never looks into the plant but through what a real controller could see; only the oracle does.
package peer
