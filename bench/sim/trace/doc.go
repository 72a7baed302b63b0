// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package trace reads a recorded load: CSV with the columns time (RFC 3339 or seconds), rate (messages per second) and,
// if known, replicas; or with timestamp (RFC 3339 or Unix time) and messages until the next row. Package recording cuts
// one with gaps into parts without any.
//
// Layer 3. It never guesses: an invalid number, a time out of order or too long a gap is an error with its line.
package trace
