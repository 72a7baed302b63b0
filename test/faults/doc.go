// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package faults tests what becomes of replicas when Pulsar's admin service answers wrongly, late or not at all: the
// adapter as a process reads a real broker through a falsifying proxy, and scales real consumers by what it reads.
//
//	adapter -> Proxy -> broker    a Function for each mode, whose pulsarConfig names the proxy
//	adapter ----------> broker    its twin under the same load, read truly
//
// A mode is a Fault and what may become of it: how far replicas get from the twin's, which condition says why, how long
// the recovery takes. The memory of the adapter is bounded in all of them. Without -all the tests run those that show
// most.
//
// Floor 3. It is a package of its own because it takes the adapter to its limits.
package faults
