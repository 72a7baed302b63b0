// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package node is a node for the control plane of test/cluster: it schedules pods, runs them from the files of OCI
// images, and routes cluster IPs.
//
// Floor 3, used by tests that install the product. The test process runs in a user, network and mount namespace of its
// own (Main). In it, each pod is a process in further namespaces, with its own address, root file system, user and
// volumes, as a container has them, a proxy in place of kube-proxy listens on cluster IPs, and a hosts file has the
// names of headless Services for programs of the test. It needs Linux, with user namespaces and the ip command, and no
// other right.
//
// What it does not prove: no cgroup limits memory or CPU, no seccomp profile and no NetworkPolicy applies, all files of
// a volume belong to the container's user whatever fsGroup says, there is no DNS in pods, and a token is not renewed. A
// pod has one container; for a pod that needs more, its status says what is missing.
package node
