// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestAnOutageIsJudgedByTheTargetThatFellDeepest(t *testing.T) {
	held := []pods.Sample{{Time: at(-5), Desired: 6}, {Time: at(200), Desired: 0}}
	shrank := []pods.Sample{{Time: at(-5), Desired: 5}, {Time: at(30), Desired: 2}, {Time: at(60), Desired: 5}}
	fell := []pods.Sample{
		{Time: at(-5), Desired: 6},
		{Time: at(57), Desired: 0},
		{Time: at(90), Desired: 1},
		{Time: at(95), Desired: 0},
	}
	outage := span{at(0), at(120)}
	require.Equal(t, fall{OutageMinReplicas: new(6), OutageHadReplicas: new(6), OutageFell: new(0), OutageTargets: new(1)},
		newFall([][]pods.Sample{held}, outage))
	require.Equal(t, fall{OutageMinReplicas: new(2), OutageHadReplicas: new(5), OutageFell: new(0), OutageTargets: new(2)},
		newFall([][]pods.Sample{held, shrank}, outage))
	require.Equal(t, fall{
		OutageMinReplicas: new(
			0), OutageHadReplicas: new(5), OutageFell: new(1), OutageTargets: new(3), OutageFirstFallSeconds: new(57.0),
	}, newFall([][]pods.Sample{held, shrank, fell}, outage))
}

func TestQuantilesAreOfAllTargetsAndNotOfThoseThatWoke(t *testing.T) {
	var waits []time.Duration
	for i := range 100 {
		waits = append(waits, time.Duration(100-i)*time.Second)
	}
	require.Equal(t, awakening{
		BurstP50Seconds: new(
			50.0), BurstP99Seconds: new(99.0), BurstMaxSeconds: new(100.0), BurstTargets: new(100), BurstWoke: new(100),
	}, newAwakening(waits, 100))
	require.Equal(t, awakening{BurstP50Seconds: new(75.0), BurstTargets: new(150), BurstWoke: new(100)},
		newAwakening(waits, 150))
	require.Equal(t, awakening{BurstTargets: new(300), BurstWoke: new(100)}, newAwakening(waits, 300))
	require.Equal(t, awakening{BurstTargets: new(1), BurstWoke: new(0)}, newAwakening(nil, 1))
}
