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
// data of an input topic, which comes first for a target at zero, and after a poll interval. A reconcile without a
// change writes nothing, and one that wakes a target leaves the report to one two seconds later. It waits for no
// watch: until the cache has the policy that it wrote last, it continues from the API server's answer to that write.
//
// Package controllers/policyset creates the policies of an AutoscalingPolicySet, which are reconciled like any other.
//
// Metrics:
//
//	pulsar_autoscaler_policy_reconciles_total{result}                  reconciles of policies
//	pulsar_autoscaler_policy_applies_total{result}                     HorizontalPodAutoscalers and ScaledObjects applied
//	pulsar_autoscaler_policy_scales_total{result}                      replicas that the controller wrote itself
//	pulsar_autoscaler_policy_status_patches_total{result}              statuses written
//	pulsar_autoscaler_actuation_seconds{actuator}                      from a decision until its replicas run
//	pulsar_autoscaler_actuation_lag_seconds{actuator}                  from a decision until an autoscaler set it
//
// The results of a reconcile are decided, held, unknown (no reading), violated (the user has to fix something), waiting
// (for the first response of Pulsar), paused, suspending, restoring, pending, woken (the report comes soon), gone and
// error; of an apply applied, conflict, refused and error; of a scale scaled and error; of a patch patched and error.
// Durations are controller-runtime's. The series of each policy are in package controllers/metrics.
package controllers
