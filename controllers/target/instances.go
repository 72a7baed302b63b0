// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

// InstanceMetrics says how to find the instances of a workload, to scrape their own counters.
type InstanceMetrics string

// The values of InstanceMetrics.
const (
	// PodInstanceMetrics finds them by their pods.
	PodInstanceMetrics InstanceMetrics = "Pods"
	// NoInstanceMetrics scrapes no instance, and needs no right to read pods.
	NoInstanceMetrics InstanceMetrics = "Off"
)

// WorkloadKey is the key of a workload for the scrape of its instances, such as Function/media/resize, or
// StatefulSet/media/pf-public-default-resize.
func WorkloadKey(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }
