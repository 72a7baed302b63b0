// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity makes what parties in a test prove with who they are: certificates of an own authority, signed
// tokens, and an OAuth2 issuer with discovery and keys that a real broker can check.
//
// Floor 3, for tests. It listens on 127.0.0.1 only, writes no file, and knows nothing of the product.
package identity
