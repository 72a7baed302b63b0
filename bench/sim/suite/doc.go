// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package suite has the loads on which controllers are compared: the named scenarios, each with one problem from
// practice, and a generator of held-out ones from a seed, on which no controller was tuned.
//
// Layer 3. It has no controllers, and uses the model only for the output of the first Function of a chain.
package suite
