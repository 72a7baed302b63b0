// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

// InstanceMetrics says where the instances of a workload are found, to be asked for what they count themselves.
type InstanceMetrics string

// The two ways.
const (
	// PodInstanceMetrics finds them by their pods.
	PodInstanceMetrics InstanceMetrics = "Pods"
	// NoInstanceMetrics leaves them alone, and needs no right to see pods.
	NoInstanceMetrics InstanceMetrics = "Off"
)

// WorkloadKey names a workload to those who ask its instances, such as Function/media/resize, or
// StatefulSet/media/pf-public-default-resize.
func WorkloadKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }
