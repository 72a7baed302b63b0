// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package informer is what both binaries read of Kubernetes, from the cache: policies, signals, credentials, pods,
// ScaledObjects and the Lease of the replica that decides.
//
// Floor 2, an edge: it knows packages api/v1alpha1, backlog, policy and their pure packages, controllers/target and
// controllers/cluster, and the Kubernetes API. It reads and never writes.
//
//	setup.go        Setup: all of it for cmd/scaler; cmd/adapter puts it together in package controllers
//	signals.go      Signals: what was measured for an object, a worker's function or a subscription; resolve.go looks
//	                their subscriptions up in the background
//	policies.go     Policies, by name
//	lease.go        DecisionMaker: whether the holder of the Lease is alive
//	credentials.go  Credentials: what Secrets say; secrets.go reads them one by one
//	pods.go         Pods: where instances serve their metrics; podhealth.go how they are
//	manager.go      what a manager has to be made with
//
// Credentials and Pods are optional: a platform may grant no right to see Secrets or pods.
//
// It has no metrics of its own.
package informer
