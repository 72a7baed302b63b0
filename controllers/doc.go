// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllers keeps policies, HorizontalPodAutoscalers and ScaledObjects in step with what was decided.
//
// Floor 2, an edge: it knows packages api/v1alpha1, backlog, policy and their pure packages and one outside system, the
// Kubernetes API, which it reads through controllers/target, controllers/informer and controllers/cluster. It never
// speaks to Pulsar itself, never computes replicas, and never takes over a field that another manager owns.
//
// The reconcile of a policy, on the leader alone (policy_reconciler.go):
//
//	observed := observe                               what Kubernetes and the store have, plan.Check included
//	decision, state := policy.Decide(plan.Input(observed), before)
//	actions := plan.New(observed, decision)           every write, as data
//	result := applier.apply(observed, actions)        the only writer
//	plan.Status(observed, decision, state, result)    one patch, or none
//
// It begins when the policy, its target or an autoscaler on the same target changes, when the poller has news of an
// input topic, and after a poll interval. A reconcile without a change writes nothing.
//
// Package controllers/policyset makes the policies of an AutoscalingPolicySet, which are reconciled as above like any
// other.
//
// Metrics:
//
//	pulsar_autoscaler_policy_reconciles_total{result}                  reconciles of policies
//	pulsar_autoscaler_policy_applies_total{result}                     HorizontalPodAutoscalers and ScaledObjects applied
//	pulsar_autoscaler_policy_scales_total{result}                      replicas that the controller wrote itself
//	pulsar_autoscaler_policy_status_patches_total{result}              statuses written
//	pulsar_autoscaler_actuation_seconds{actuator}                      from a decision until its replicas run
//
// The results of a reconcile are decided, held, unknown (no reading), violated (the user has to fix something), waiting
// (for the first answer of Pulsar), paused, suspending, restoring, gone and error; of an apply applied, conflict,
// refused and error; of a scale scaled and error; of a patch patched and error. Durations are controller-runtime's. The
// series of each policy are those of package controllers/metrics.
package controllers
