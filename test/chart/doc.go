// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package chart checks deploy/chart: that its README has every value, that the programs take the flags that it renders,
// that a real API server takes every object, that the admission policies deny what they say, and that what the guides
// in docs/guides have users run is taken.
//
// Floor 3. It only has tests. All but the README's need helm. The definitions of cert-manager and the Prometheus
// operator are those of the Go modules that ./operators pins, and KEDA's those of the KEDA that tests run.
package chart
