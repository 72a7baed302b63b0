// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package policy decides how many replicas to run. Decide takes a reading and the state of the last decision, and
// returns the replicas, the reasons and the next state. Encode and Resume carry the state from one process to the next.
//
//	Decide        decide.go
//	  learn         capacity of a replica (learn.go, probe.go), arrivals (arrivals.go), start time (start.go), limits
//	                behind the Function (plateau.go), backlog that replicas cannot process (floor.go, consumers.go),
//	                loads that return (foresight.go, with package forecast), and late messages (budget.go)
//	  evaluate      the strategies (strategies.go) and the formula (capacity.go); Failover is in partitions.go
//	  stabilize     scale to zero and wake (zero.go); tryUp, or tryDown and worthwhile (holds.go)
//	  limit         how fast replicas may be added, or whether at all (behavior.go)
//	  bound         minReplicas and maxReplicas (input.go)
//	State         what the next decision needs (state.go, encode.go), and how often to poll (pace.go)
//
// Layer 1: it knows the API and package backlog. It never reads a clock, speaks to a server, logs, or starts a
// goroutine. The same input always gives the same decision, so every decision can be replayed.
package policy
