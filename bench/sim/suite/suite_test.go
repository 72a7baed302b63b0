// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestScenariosAreComplete(t *testing.T) {
	names := map[string]bool{}
	for _, s := range append(Named(), HeldOut(7, 200)...) {
		require.False(t, names[s.Name], s.Name)
		names[s.Name] = true
		require.Positive(t, s.Seconds, s.Name)
		require.Positive(t, s.Objective, s.Name)
		require.Positive(t, s.Start, s.Name)
		require.Greater(t, s.Max, s.Min, s.Name)
		for second := 0; second < s.Seconds; second += 30 {
			require.GreaterOrEqual(t, s.Rate(float64(second)), 0.0, s.Name)
			require.Positive(t, s.Capacity(float64(second)), s.Name)
		}
		for _, step := range s.Steps {
			require.Less(t, step, s.Seconds, s.Name)
		}
	}
}

func TestHeldOutScenariosFollowFromTheSeed(t *testing.T) {
	one, again, other := HeldOut(3, 60), HeldOut(3, 60), HeldOut(4, 60)
	same := 0
	for i := range one {
		for second := range 100 {
			at := float64(second * 36)
			require.InDelta(t, one[i].Rate(at), again[i].Rate(at), 0)
			require.InDelta(t, one[i].Capacity(at), again[i].Capacity(at), 0)
		}
		without := func(s Scenario) Scenario {
			s.Rate, s.Capacity = nil, nil
			return s
		}
		require.Equal(t, without(one[i]), without(again[i]))
		require.Equal(t, without(one[i]), without(HeldOut(3, i+1)[i]), "it does not depend on how many are drawn")
		if one[i].Objective == other[i].Objective {
			same++
		}
	}
	require.Less(t, same, 10)
}

func TestNoHeldOutLoadNeedsMoreReplicasThanThereMayBe(t *testing.T) {
	for _, s := range HeldOut(11, 300) {
		for second := 0; second < s.Seconds; second += 30 {
			require.Less(t, s.Rate(float64(second))/s.Capacity(float64(second)), float64(s.Max), s.Name)
		}
	}
}
