// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps what takes minutes to create, such as the control plane's binaries or a broker's distribution,
// outside the tree: created once per machine and key, on first use.
//
// Layer 3, used by the other packages of test. A directory of the cache is complete or absent, never partial, even
// after a kill; two processes never create the same one at once. It never deletes a complete directory, and never reads
// one.
package cache
