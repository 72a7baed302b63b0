// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package controllers keeps policies, HorizontalPodAutoscalers and ScaledObjects in step with what was decided, and
// tells the rest of the process what Kubernetes says.
//
// Floor 2, an edge: it knows packages api/v1alpha1, backlog and policy and one outside system, the Kubernetes API. It
// never speaks to Pulsar itself (of what a function worker runs it is told by Worker), never computes replicas, and
// never takes over a field that somebody else manages.
//
// The walk of a policy, on the leader alone (policy_reconciler.go):
//
//	gather -> plan.Check -> input of readings and pods -> policy.Decide -> plan.New -> write -> one status patch
//
// It begins when the policy, its target or an autoscaler on the same target changes, when the poller has news of an
// input topic, and after a poll interval. A pass over a world that did not change writes nothing.
//
// A policy with a targetSelector, a fleet, has a walk of its own (fleet_reconciler.go): one policy for each object that
// matches, its child, which goes the walk above like any other.
//
// On every replica, Signals, Policies and DecisionMaker answer from memory what the metrics API asks. Credentials and
// Pods tell the readers of Pulsar and of instances what Secrets and pods say, and Pods tells decisions how the target's
// pods are; neither is needed: a platform may grant no right to see them.
//
// Metrics:
//
//	pulsar_autoscaler_policy_reconciles_total{result}                  passes over policies
//	pulsar_autoscaler_policy_applies_total{result}                     HorizontalPodAutoscalers and ScaledObjects applied
//	pulsar_autoscaler_policy_scales_total{result}                      numbers of replicas that the controller wrote itself
//	pulsar_autoscaler_policy_status_patches_total{result}              statuses written
//	pulsar_autoscaler_policy_desired_replicas{namespace,policy}        replicas last decided
//	pulsar_autoscaler_policy_current_replicas{namespace,policy}        spec.replicas of the target
//	pulsar_autoscaler_fleet_reconciles_total{result}                   passes over fleets: fleet, violated, gone and error
//	pulsar_autoscaler_fleet_policies_total{result}                     children: applied, conflict, refused, error, removed and remove_error
//	pulsar_autoscaler_fleet_status_patches_total{result}               statuses of fleets written
//	pulsar_autoscaler_cluster_ability{ability}                         1 for what the cluster can do, 0 for what it cannot
//	pulsar_autoscaler_cluster_probes_total{result}                     dry runs of a HorizontalPodAutoscaler
//	pulsar_autoscaler_cluster_probe_duration_seconds                   from a dry run to its answer
//
// The abilities are custom_metrics and external_metrics (HorizontalPodAutoscalers ask the adapter, and nobody else, for
// these), scale_to_zero and tolerance (the API server takes minReplicas 0, and keeps the tolerance), and keda (its
// kinds are installed); what is not known has no gauge. A probe ends as answered or error. Every replica shows them.
//
// The results of a pass are decided, held, unknown (no reading), violated (the user has to mend something), waiting
// (for the first answer of Pulsar), off, fleet (a policy with a selector), takingOver, givingBack, gone and error; of
// an apply applied, conflict, refused and error; of a scale scaled and error; of a patch patched and error. The gauges
// are as many as there are policies and go with them; durations are controller-runtime's.
package controllers
