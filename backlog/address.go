// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

// InstanceAddress is where one instance of a workload serves its metrics.
type InstanceAddress struct {
	// ID tells the instances of a workload apart, such as the name of the pod.
	ID string
	// HostPort is an IP address or a name, and a port, such as 10.2.0.17:9094.
	HostPort string
	// Component is tenant/namespace/name of the function, sink or source that is meant, where several share a process and
	// its metrics, as on a function worker; empty for the only one there.
	Component string
}
