// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package set plans the policies of an AutoscalingPolicySet: one for each object that its selector matches and that it
// governs.
//
// Layer 1: it knows the API, packages policy/plan and policy/report, and the Kubernetes types. It never reads a clock,
// speaks to a server, logs, or starts a goroutine. Read it in this order:
//
//	set.go       Observe: which objects match, and which of them the set governs. New: the policies to write
//	template.go  the policy of an object, its name, and whether the live one differs
//	status.go    Status of the set, and when to write it
package set
