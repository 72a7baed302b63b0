// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan lists the writes for a policy. Observed is what the controller read about the policy. Check finds what
// the user has to fix first, Input is the input of the decision, and New lists the writes that carry the decision out.
//
// Layer 1: it knows the API, packages backlog and policy, and the Kubernetes types. It never reads a clock, speaks to a
// server, logs, or starts a goroutine. The same input always gives the same plan. Read it in this order:
//
//	observed.go       what the controller read: the target, the reading, other autoscalers
//	check.go          Check: what a user must fix, such as another autoscaler; keda.go for KEDA
//	names.go          what targets, autoscalers and children of a FunctionMesh are called
//	plan.go           Input of the decision; New -> Actions, and Result, which is what came of them
//	actuator.go       Choose: HPA, KEDA or Direct, and Direct where the autoscaler lags
//	autoscaler.go     the HorizontalPodAutoscaler to apply; scaledobject.go the ScaledObject
//	suspend.go        how a conflicting autoscaler is suspended; restore.go how it is restored
//	history.go        what earlier reconciles wrote
//	manualscale.go    replicas that others wrote; writer.go who did, and reset.go what follows from a manifest
package plan
