// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package migrate translates what scales targets today into policies: ScaledObjects with pulsar triggers,
// HorizontalPodAutoscalers, and Function Mesh's maxReplicas. The policies have mode Recommend and conflictPolicy
// TakeOver: with mode Auto the controller suspends the other autoscaler, and restores it when the policy is deleted.
//
// Layer 1: it knows the API, packages policy/plan, policy/schedule and policy/set, and the Kubernetes types. It never
// reads a clock, speaks to a server, logs, or starts a goroutine. Read it in this order:
//
//	migrate.go       Input, Result and Translate
//	target.go        the target of an autoscaler, which may be a Function behind a StatefulSet
//	draft.go         the policy of one target, of all its autoscalers
//	scaledobject.go  ScaledObjects, with trigger.go for their triggers; provider/keda reads its keys too
//	autoscaler.go    HorizontalPodAutoscalers
//	functionmesh.go  maxReplicas of Functions, Sinks, Sources and entries of FunctionMeshes
//	sets.go          one AutoscalingPolicySet for policies that agree
package migrate
