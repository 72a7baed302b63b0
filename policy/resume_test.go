// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestACheckpointThatCannotBeReadHoldsReplicas(t *testing.T) {
	for name, text := range map[string]string{"none": "", "in pieces": opaque(`{"v":1,"at":"2026-`)} {
		t.Run(name, func(t *testing.T) {
			resumed, err := policy.Resume(text, 9, noon())
			require.Equal(t, text == "", err == nil)
			require.Equal(t, policy.State{
				Recommendations: []policy.ReplicasAt{{At: noon(), Replicas: 9}},
			}, resumed)
		})
	}
}

func TestReplicasStayForAWindowAfterAPause(t *testing.T) {
	later := noon().Add(time.Hour)
	state := policy.State{Capacity: learned(98.5), Arrivals: arrivals(50)}.Continue(9, later)
	require.Equal(t, learned(98.5), state.Capacity)
	for second := 0; second <= 130; second += 10 {
		in := input(9, reading(0, 50))
		in.Now = later.Add(time.Duration(second) * time.Second)
		in.Reading.At = in.Now
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if second < 30 {
			require.Equal(t, int32(9), decision.Replicas, "after %d s", second)
		} else {
			require.Equal(t, int32(1), decision.Replicas, "after %d s", second)
		}
	}
}

// The first answer of a process has no rate, so that the arrivals are those of the last process.
func TestArrivalsOfHoursAgoAddNoReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		more  bool
	}{
		"of a moment ago":  {20 * time.Second, true},
		"of six hours ago": {6 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			later := noon().Add(test.after)
			before := arrivals(1000)
			before.At = noon()
			state := policy.State{Capacity: learned(100), Arrivals: before}.Continue(2, later)
			in := input(2, reading(0, 0))
			in.Now, in.Reading.At, in.Reading.Window = later, later, 0
			in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
			in.Reading.ProcessRate, in.Reading.GrowthRate = in.Reading.PublishRate, in.Reading.PublishRate
			decision, _ := policy.Decide(in, state)
			require.Equal(t, test.more, decision.Replicas > 2, "%+v", decision)
		})
	}
}
