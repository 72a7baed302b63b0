// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster knows what the Kubernetes cluster can do: which API groups and kinds there are, who serves the
// metrics APIs, and what the API server makes of a HorizontalPodAutoscaler.
//
// Floor 2, an edge: it knows packages api/v1alpha1, policy and policy/plan and the Kubernetes API, and none of the
// other packages under controllers. It writes nothing: a dry run leaves no object behind.
//
//	kinds.go         the names and versions of every kind that is read
//	discovery.go     brings the objects of a kind into the cache as soon as the kind exists
//	published.go     notices that a kind was uninstalled
//	capabilities.go  watches the APIServices and repeats the dry run
//
// Every replica runs all of it, so that a new leader knows at once.
//
// Metrics:
//
//	pulsar_autoscaler_cluster_capability{capability}    1 for what the cluster can do, 0 for what it cannot
//	pulsar_autoscaler_cluster_probes_total{result}      dry runs of a HorizontalPodAutoscaler: answered or error
//	pulsar_autoscaler_cluster_probe_duration_seconds    from a dry run to its answer
//
// The capabilities are custom_metrics and external_metrics (HorizontalPodAutoscalers ask the adapter for these),
// scale_to_zero and tolerance (the API server takes minReplicas 0, and keeps the tolerance), and keda (its kinds are
// installed). What is not known has no gauge.
package cluster
