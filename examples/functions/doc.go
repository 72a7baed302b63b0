// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package functions has the sources of the example Functions, in Java and Python, that benchmarks scale. They copy each
// message to the output after a service time.
//
// Layer 3. What runs Functions on this machine compiles them from here; README.md says how users build them.
package functions
