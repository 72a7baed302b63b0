// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllers reconciles policies: it writes HorizontalPodAutoscalers, ScaledObjects, replicas and statuses.
//
// Layer 2, an edge: it imports api/v1alpha1, backlog and policy with their pure packages, and talks to one outside
// system, the Kubernetes API, through controllers/target, controllers/informer and controllers/cluster. It never sends
// requests to Pulsar, never computes replicas, and never takes over a field that another manager owns.
//
// The reconcile of a policy, on the leader alone (policy_reconciler.go):
//
//	observed := observe                                        Kubernetes and the store, plan.Check included
//	decision, state := policy.Decide(plan.Input(observed), before)
//	actions := plan.New(observed, decision)                    every write, as data
//	result := applier.apply(observed, actions)                 the only writer
//	report.Status(observed, history, decision, state, result)  one patch, or none
//
// A reconcile starts when the policy, its target or an autoscaler of the same target changes, when the poller has new
// data of an input topic, which comes first for a target at zero, and after 1.25 poll intervals without these. A
// reconcile without a change writes nothing, and one that wakes a target leaves the report to one two seconds later.
// While half of the workers write statuses and policies wait for a decision, it leaves the report to one after these,
// unless an autoscaler reads the new number there. It waits for no watch: until the cache has the policy that it wrote
// last, it continues from the API server's answer to that write.
//
// Package controllers/policyset creates the policies of an AutoscalingPolicySet, which are reconciled like any other.
// Package controllers/metrics has the series of each policy, and metrics.go those of the controller, with the results
// of reconciles.
package controllers
