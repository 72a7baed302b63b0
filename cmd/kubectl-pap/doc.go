// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-pap is a plugin of kubectl (kubectl pap) and a standalone program.
//
//	main.go      the process: signals, exit code, and the command tree
//	top.go       kubectl pap top: lists policies, with topscreen.go, the table and --watch
//	explain.go   kubectl pap explain: explains the last decision of a policy, with explanation.go, the value, and
//	             explanationtext.go
//	check.go     kubectl pap check: checks a policy or the installation, with checkstatus.go, which reads the verdict of
//	             the adapter, and the receive queue, checkcluster.go and checkrights.go. With -f it tries a policy out
//	migrate.go   kubectl pap migrate: policies for what scales today, with migratetext.go, what it writes, and
//	             migrateapply.go for --apply
//	simulate.go  kubectl pap simulate: simulates a policy with a recorded load
//	plan.go      kubectl pap plan: what other objectives of a policy would cost with its load
//	report.go    kubectl pap report: what policies did in a period, from Prometheus
//	bench.go     kubectl pap bench: compare contenders under a real load, bench clean, and the replicas of contenders
//	             without Function Mesh
//	flags.go     flags of several commands, also those for a Prometheus, and -o json, yaml and the others
//
// Each command is a file, with its flags, help and examples. simulate, plan, report and bench do their work in packages
// below bench; top and explain read policies and nothing else. check reads the cluster around them, and with -f creates
// a policy for a moment. migrate translates with package policy/migrate.
//
// Layer 3.
package main
