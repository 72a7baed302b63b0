// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package identity creates credentials for tests: certificates of a test authority, signed tokens, and an OAuth2 issuer
// with discovery and keys that a real broker verifies.
//
// Layer 3, for tests. It listens only on 127.0.0.1, writes no files, and does not know the product.
package identity
