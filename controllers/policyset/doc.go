// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package policyset maintains a policy for each object that an AutoscalingPolicySet selects.
//
// Layer 2, an edge: it imports api/v1alpha1 and policy/set, and talks to one outside system, the Kubernetes API, which
// it reads through controllers/target and controllers/cluster. It decides nothing: package controllers reconciles a
// policy of a set like any other.
//
// The reconcile of a set, on the leader alone:
//
//	observe -> set.Observe -> set.New -> write policies -> one status patch
//
// A reconcile starts when a set or a policy changes, when an object's labels or owners or a FunctionMesh's components
// change, and every minute. A reconcile without a change writes nothing.
package policyset
