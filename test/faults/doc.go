// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults tests replicas while Pulsar's admin service responds wrongly, late or not at all: the adapter as a
// process reads a real broker through a faulty proxy, and scales real consumers.
//
//	adapter -> Proxy -> broker    a Function for each mode, whose pulsarConfig names the proxy
//	adapter ----------> broker    its twin under the same load, read truly
//
// A mode is a Fault, and the condition that reports it. In all modes replicas stay where the twin's are, and the
// adapter uses little memory.
//
// Layer 3. It is a separate package because it takes the adapter to its limits.
package faults
