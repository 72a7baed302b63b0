// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package auth authenticates requests to Pulsar: each set of credentials is an http.RoundTripper.
//
// Layer 2, an edge: it reads the files of credentials, and gets tokens from OAuth2 issuers. It never shows a secret in
// an error, and never sends one to an issuer that is not allowed.
//
// Authenticate resolves a name to its current credentials, so a rotated file or Secret needs no restart. Equal
// credentials share a session with the token of an issuer, and sessions with equal certificates share connections. A
// session ends after sessionIdle.
//
// Credentials from an object of a user never make this package read a file, or call an issuer that is not in
// Config.AllowedIssuers. Those of the program's administrator may.
package auth
