// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

// Noise is learned from the data, so more frequent looks at the same load are no reason for more replicas.
func TestTheCostDoesNotDependOnThePollInterval(t *testing.T) {
	cost := func(every int) float64 {
		sum := 0.0
		for i, s := range suite.HeldOut(3, 40) {
			score, _ := simulate(s, baseline.Polling(every), uint64(i))
			sum += math.Log(score.ReplicaSeconds)
		}
		return math.Exp(sum / 40)
	}
	usual := cost(10)
	for _, every := range []int{1, 2, 5} {
		require.InDelta(t, 1, cost(every)/usual, 0.02, "a poll each %d s", every)
	}
}
