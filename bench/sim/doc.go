// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command sim compares controllers on simulated load: the named suite, and held-out scenarios drawn from the seed on the
// command line.
//
// Its numbers are about a model. Three of its scenarios are replayed on real parts elsewhere, and the model's constants
// are those that were measured there.
package main
