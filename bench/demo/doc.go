// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Command demo runs the product on this machine: a real Pulsar broker, a real Kubernetes control plane with its
// HorizontalPodAutoscaler controller, the adapter as a process with the permissions of its manifests, and a Function of
// Pulsar's own Java function instances. A load steps up and down. A table shows replicas and backlog every few seconds;
// the result and an HTML page with charts follow at the end.
//
// Usage: go run ./bench/demo [-keep] [-out DIR], or -from result.json to draw the page of an earlier run again
//
// The exit code is 0 if replicas followed the load and every message was processed, 1 if they did not or a requirement
// is missing, 2 for a wrong flag, and 130 after an interruption.
//
// Layer 3. It decides nothing: replicas follow the policy through the HorizontalPodAutoscaler. The numbers on screen
// are counted at the publisher and at the replicas, independently of the product.
package main
