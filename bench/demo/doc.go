// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo shows the product at work on this machine: a real Pulsar broker, a real Kubernetes control plane with
// its HorizontalPodAutoscaler controller, the adapter as a process with the rights of its manifests, and a Function of
// Pulsar's own Java function instances. A load steps up and down; the table shows what the autoscaler makes of it, and
// at the end stand a summary, a plot and an HTML page.
//
// Usage: go run ./bench/demo [-keep] [-out DIR] [-short-run]
//
// It exits with 0 when replicas followed the load and every message was done, with 1 when they did not or something is
// missing, with 2 for a wrong flag, and with 130 when it was interrupted.
//
// Floor 3. It decides nothing: replicas come from the policy, through the HorizontalPodAutoscaler. It measures nothing
// the product measures either: the numbers on screen are counted at the publisher and at the replicas.
package main
