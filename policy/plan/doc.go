// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan lists the writes for a policy. Observed is what the controller read about the policy, as four values:
// the Subject (the policy and its target), what is Measured, the Autoscalers on the target, and the Memory of earlier
// reconciles. Check finds what the user has to fix first, Input is the input of the decision, and New lists the writes
// that carry the decision out.
//
// Layer 1: it knows the API, packages backlog and policy, and the Kubernetes types. It never reads a clock, speaks to a
// server, logs, or starts a goroutine. The same input always gives the same plan. Read it in this order; a file refers
// only to those before it:
//
//	names.go          what targets, autoscalers and children of a FunctionMesh are called
//	subject.go        the policy and its target, what follows from the two, and what a user must fix
//	autoscaler.go     the HorizontalPodAutoscaler to apply; scaledobject.go the ScaledObject
//	capabilities.go   what the cluster offers: the actuator that Auto chooses for a kind of target
//	conflicts.go      the autoscalers on the target, ours and others, and how a user resolves a conflict
//	actuator.go       Choose: HPA, KEDA or Direct, and Direct where the autoscaler lags
//	writer.go         who wrote replicas; reset.go what follows if a tool that applies manifests did
//	history.go        what earlier reconciles wrote
//	observed.go       the four values as one, and what holds the replicas
//	check.go          Check: what to fix first, such as another autoscaler, or what KEDA would refuse
//	suspend.go        how a conflicting autoscaler is suspended; restore.go how it is restored
//	manualscale.go    replicas that others wrote
//	plan.go           Input of the decision; New -> Actions, and Result, which is what came of them
//	after.go          the history after the actions
package plan
