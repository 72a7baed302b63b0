// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package distribution fetches Pulsar from Maven Central into the cache, once per version, with Maven.
//
// Layer 3. It imports no client of Pulsar, since a new machine compiles it first, and starts nothing but Maven.
package distribution
