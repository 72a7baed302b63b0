// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package node is a node for the control plane of test/cluster: it schedules pods, runs them from the files of OCI
// images, and routes cluster IPs.
//
// Layer 3, used by tests that install the product. The test process runs in its own user, network and mount namespace
// (Main). In it, each pod is a process in further namespaces with its own address, root file system, user and volumes,
// as a container has them. A proxy in place of kube-proxy listens on cluster IPs, and a hosts file has the names of
// headless Services for programs of the test. It needs Linux with user namespaces and the ip command, and no other
// privilege.
//
// Limits: no cgroup limits memory or CPU, no seccomp profile and no NetworkPolicy applies, all files of a volume belong
// to the container's user with any fsGroup, pods have no DNS, and tokens are not renewed. A pod has one container; the
// status of another pod lists what is unsupported.
package node
