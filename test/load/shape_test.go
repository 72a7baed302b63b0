// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestShapesHaveTheirMessages(t *testing.T) {
	for name, test := range map[string]struct {
		shape    Shape
		messages float64 // in a minute
	}{
		"a constant rate":           {Constant(100), 6000},
		"the rate that fills disks": {Constant(10_000), 600_000},
		"a step":                    {Step(10, 100, 20*time.Second, 40*time.Second), 2400},
		"a step from the start":     {Step(0, 250, 0, 10*time.Second), 2500},
		"a burst":                   {Burst(1000, 0, time.Second), 1000},
		"a burst on a rate":         {Burst(1000, 5, 100*time.Millisecond), 1300},
	} {
		t.Run(name, func(t *testing.T) {
			schedule, err := test.shape.Schedule(nil)
			require.NoError(t, err)
			require.InDelta(t, test.messages, schedule.Messages(time.Minute), 1e-6)
			require.Greater(t, schedule.End(), 5*time.Hour)
		})
	}
}
