// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package cluster discovers the capabilities of the Kubernetes cluster: the API groups and kinds it serves, the server
// of the metrics APIs, and the fields of a HorizontalPodAutoscaler that the API server keeps. Apply writes objects.
//
// Layer 2, an edge: it imports api/v1alpha1, policy and policy/plan, no other package under controllers, and talks to
// the Kubernetes API. A dry run leaves no object behind.
//
//	kinds.go         the names and versions of all kinds
//	discovery.go     adds the objects of a kind to the cache as soon as the kind exists
//	published.go     notices that a kind was uninstalled
//	capabilities.go  watches the APIServices and repeats the dry run
//	apply.go         applies an object on the server
//
// Every replica runs all of it, so that a new leader has the capabilities at once: custom_metrics and external_metrics
// (HorizontalPodAutoscalers get these from the adapter), tolerance (the API server keeps that of a
// HorizontalPodAutoscaler), and keda (its kinds are installed).
package cluster
