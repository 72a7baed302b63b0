// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package workerpods runs the pods of Pulsar's own function worker as processes of this machine (test/pods).
//
// Layer 3, used by the tests with real parts. A pod's own command runs in a real shell. A directory has the content of
// its container: Pulsar's jars, a pulsar-admin that returns a local package, and a java with ports and memory for this
// machine. It does not decide on the number of pods, and leaves no processes and no files.
package workerpods
