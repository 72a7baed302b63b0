// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache keeps what takes minutes to make, such as the control plane's binaries or a broker's distribution,
// outside the tree: made once per machine and key, by whoever needs it first.
//
// Floor 3, used by the other packages of test. A directory of the cache is complete or absent, never half made, whoever
// was killed while making it; two processes never make the same one at once. It never deletes a complete directory and
// never looks inside one.
package cache
