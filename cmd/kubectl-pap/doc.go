// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-pap is a plugin of kubectl (kubectl pap) and a standalone program.
//
//	main.go      the process: signals, exit code
//	root.go      the command tree
//	simulate.go  kubectl pap simulate: simulates a policy with a recorded load, with prometheus.go
//	bench.go     kubectl pap bench: compare contenders under a real load, with benchflags.go, benchclean.go, and
//	             benchconsume.go for the replicas of contenders without Function Mesh
//
// Each command is a file, with its flags, help and examples. The work is in packages below bench.
//
// Layer 3.
package main
