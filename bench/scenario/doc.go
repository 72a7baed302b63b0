// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

// Package scenario reads what a benchmark does: the load, the Function, the contenders that scale it, and the limits
// that are to be met. Unknown keys are errors, defaults are set, and errors name the field and what it must be.
//
// Floor 3, used by benchmarks and by the plugin. It needs no cluster.
package scenario
