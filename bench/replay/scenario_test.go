// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAllScenariosEndWithinHalfAnHour(t *testing.T) {
	var sum time.Duration
	for _, s := range all() {
		sum += s.length
		found, ok := find(s.name)
		require.True(t, ok)
		require.Equal(t, s.name, found.name)
		require.Less(t, s.length.Seconds(), float64(longest))
	}
	require.LessOrEqual(t, sum, 29*time.Minute)
	_, ok := find("nonesuch")
	require.False(t, ok)
}

func TestEveryLoadNeedsReplicasToFollowAndCanBeServed(t *testing.T) {
	for _, s := range all() {
		t.Run(s.name, func(t *testing.T) {
			_, err := s.shape(s.scale).Schedule(nil)
			require.NoError(t, err)
			least, most, rate := math.Inf(1), 0.0, s.rate()
			for second := range s.seconds() {
				least, most = min(least, rate(float64(second))), max(most, rate(float64(second)))
			}
			one := 1 / s.serviceTime.Seconds()
			require.Less(t, least, one, "one replica is enough for the least")
			require.Greater(t, most, 2*one)
			require.Less(t, most, float64(s.maxReplicas)*one)
			require.GreaterOrEqual(t, most/least, 6.0)
		})
	}
}

func TestASqueezedScenarioHasTheSameShape(t *testing.T) {
	for _, s := range all() {
		short := s.lasting(s.length / 6)
		rate, squeezed := s.rate(), short.rate()
		for share := range 100 {
			at := float64(share) / 100 * s.length.Seconds()
			require.InDelta(t, rate(at), squeezed(at/6), 1e-6, "%s at %.0f s", s.name, at)
		}
		require.InDelta(t, rate(42), squeezed(7), 1e-6)
		require.InDelta(t, s.startDelay.Seconds()/6, short.startDelay.Seconds(), 1e-6)
	}
}

func TestThePolicySaysNoMoreThanARangeAndTheObjective(t *testing.T) {
	s, _ := find("java")
	p := s.policy()
	require.Equal(t, "java", p.Spec.ScaleTargetRef.Name)
	require.Equal(t, int32(1), *p.Spec.MinReplicas)
	require.Equal(t, int32(6), p.Spec.MaxReplicas)
	require.Equal(t, time.Minute, p.Spec.LatencyObjective.Duration)
	require.Nil(t, p.Spec.Behavior)
	require.Empty(t, p.Spec.Strategies)
	require.Equal(t, usualObjective, s.function().Objective)
	s, _ = find("surge")
	require.Equal(t, s.objective, s.policy().Spec.LatencyObjective.Duration)
	require.Equal(t, s.objective, s.function().Objective)
	require.LessOrEqual(t, s.objective, s.startDelay, "help comes too late for it")
}
