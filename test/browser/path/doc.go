// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command path prints the path of a Chromium, which it brings if there is none: CHROME=$(go run ./test/browser/path).
//
// Layer 3. It is package test/browser for programs that are not in Go.
package main
