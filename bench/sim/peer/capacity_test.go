// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
)

// The adapter holds what there is for a stabilization window after its start, since what was needed since the status was
// written is not known: so does its model.
func TestARestartOfTheControllerHoldsReplicasForAWindow(t *testing.T) {
	firstDown := func(restarts ...int) int {
		s := calm()
		s.Rate, s.Restarts = func(second float64) float64 {
			if second < 600 {
				return 280
			}
			return 40
		}, restarts
		w := plant.New(s, 4)
		controller := Without(0)(w.Scenario())
		for range s.Seconds {
			w.Step()
			before := w.Replicas()
			w.Scale(controller.Replicas(w))
			if w.Second() > 600 && w.Replicas() < before {
				return w.Second()
			}
		}
		return s.Seconds
	}
	alone := firstDown()
	require.Less(t, alone, 800)
	restart := alone - 10
	require.GreaterOrEqual(t, firstDown(restart), restart+90)
}
