// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package prometheus runs a real Prometheus server on this machine, and promtool. It scrapes over HTTPS with a bearer
// token, evaluates rules, and is queried through its HTTP API.
//
// Layer 3, used by tests on real parts and of rules. The binaries are built once per machine from Prometheus' Go module
// (test/binaries/build/prometheus) and kept in the cache. It sends alerts nowhere: the server says which ones fire.
package prometheus
