// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package kubelet stands in for the nodes of a cluster without any: the pods that Pulsar's own function worker asks for
// become processes of this machine.
//
// Floor 3, used by the tests with real parts. A pod's own command runs, in a real shell and to the letter; what a
// container would have is laid out in a directory: Pulsar's jars, a pulsar-admin that has the package at hand, and a
// java that takes the ports and the memory of this machine in place of a container's. It never decides how many pods
// there are, and leaves nothing running and nothing on disk.
package kubelet
