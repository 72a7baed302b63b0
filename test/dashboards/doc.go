// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package dashboards reads the Grafana dashboards of deploy/monitoring/dashboards as Grafana does: panels, variables,
// and the queries with the variables filled in.
//
// Layer 3, used by its own tests, which need no server, and by those that run each query on a real Prometheus.
package dashboards
