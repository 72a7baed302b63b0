// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

func TestAStageGetsWhatTheOneBeforeProcesses(t *testing.T) {
	const step = 1800
	first := model.Scenario{
		Name: "first", Seconds: 2 * step, Capacity: model.Constant(100), Objective: time.Minute, Start: 25 * time.Second,
		Initial: 1, Min: 1, Max: 20,
		Rate: func(second float64) float64 {
			if second < step {
				return 50
			}
			return 500
		},
	}
	stage, score := After(first, model.Scenario{Noise: 0.3, Capacity: model.Constant(80)}, Without(), 3)
	require.Len(t, score.Trace, 2*step)
	arrived, rises := 0.0, 0
	for second := range stage.Seconds {
		arrived += stage.Rate(float64(second))
		if o := stage.Upstream(second); o != nil && o.Expected > 2*o.Processed && rises == 0 {
			rises = second
		}
	}
	require.InEpsilon(t, step*(50+500), arrived, 0.02)
	require.InDelta(t, step, rises, 30, "as soon as replicas are ordered for the step")
	require.Less(t, stage.Rate(float64(rises)), 200.0, "before they process it")
	require.True(t, stage.Exact)
	require.Zero(t, stage.Noise)
	end := stage.Upstream(stage.Seconds - 1)
	require.NotNil(t, end)
	require.InEpsilon(t, 500, end.Processed, 0.2)

	stage, _ = After(first, model.Scenario{Capacity: model.Constant(80)}, Fixed(10), 3)
	require.Nil(t, stage.Upstream(step), "fixed replicas say nothing")
}
