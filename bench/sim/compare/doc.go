// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package compare runs contenders on one recorded load: the shipped policy, KEDA's pulsar scaler, an HPA on CPU, fixed
// replicas and the replicas that really ran. Inexact inputs, the capacity and the start time of a replica, are
// simulated at their bounds too, so every result is a range.
//
//	function.go    what is known of the Function, and how well
//	contenders.go  the contenders and their settings
//	schedules.go   the limits of replicas by the schedules of the policy
//	run.go         every contender with every case
//	result.go      the report, as JSON
//	better.go      which contenders beat the policy
//	table.go       the same for a terminal
//	page.go        the same as HTML
//	curve.go       the policy alone, with several latency objectives
//
// Layer 3. Contenders are in package baseline, and the model is in package model.
package compare
