// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring checks the rules under deploy/monitoring with promtool, that docs/runbook.md has every alert and
// every reason of a condition, and that the answers of docs/observability.md are queries and panels that exist.
//
// Layer 3. It only has tests, and starts no server.
package monitoring
