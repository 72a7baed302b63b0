// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart checks deploy/chart: its README has every value, the programs accept its flags, a real API server
// accepts every object, the admission policies deny what they name, and the commands of docs/guides work.
//
// Layer 3. It only has tests. All but the README's need helm. The Go modules pinned by ./operators have the definitions
// of cert-manager and the Prometheus operator; KEDA's are those of the tested KEDA.
package chart
