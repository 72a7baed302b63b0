// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer reads Kubernetes from the cache for both binaries: policies, signals, pods, ScaledObjects and the
// Lease of the replica that decides.
//
// Layer 2, an edge: it imports api/v1alpha1, backlog and policy with their pure packages, controllers/target and
// controllers/cluster, and talks to the Kubernetes API. It reads and never writes.
//
//	setup.go        Setup: all of it for cmd/scaler; package controllers does the same for cmd/adapter. Scheme and cache
//	                options of a manager
//	signals.go      Signals: the readings of an object, a function of a worker or a subscription; resolve.go resolves
//	                their subscriptions in the background; signals_named.go has the bounds of the last two
//	policies.go     Policies, by name; scaledobjects.go has the replicas of ScaledObjects
//	lease.go        DecisionMaker: whether the holder of the Lease is alive, and a decision current
//	pods.go         Pods: the addresses of instances; podwatch.go watches them for each namespace, podhealth.go has the
//	                pod health and what is cached of a pod
//	namespaces.go   the cache of chosen namespaces; mapper.go spares it a search at each read of the Lease
//
// Pods are optional: a platform may not permit reading them.
//
// It has no metrics of its own.
package informer
