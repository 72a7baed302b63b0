// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

func at(seconds float64) time.Time {
	return time.Unix(1_800_000_000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

func TestAnAccountIsOfItsWaveAlone(t *testing.T) {
	timeline := []mesh.Sample{
		{Time: at(-50), Desired: 7, Started: 7, Ready: 7},
		{Time: at(-10)},
		{Time: at(4), Desired: 2},
		{Time: at(5), Desired: 2, Started: 2},
		{Time: at(8), Desired: 2, Started: 2, Ready: 1},
		{Time: at(9), Desired: 4, Started: 4, Ready: 2},
		{Time: at(12), Desired: 5, Started: 5, Ready: 5},
		{Time: at(20), Desired: 0, Started: 5, Ready: 5},
		{Time: at(21)},
		{Time: at(40), Desired: 9, Started: 9, Ready: 9},
	}
	var a account
	a.follow(timeline, span{at(0), at(30)}, 4)
	require.Equal(t, account{
		FirstReplicaSeconds: new(
			4.0), EnoughReplicasSeconds: new(9.0), FirstConsumingSeconds: new(8.0), EnoughConsumingSeconds: new(12.0),
		ReplicaSeconds: new(2.0*4 + 4*3 + 5*9), ReplicaChanges: new(4), MostReplicas: new(5),
	}, a)
}

func TestWhatDidNotComeAboutIsNotZero(t *testing.T) {
	var a account
	a.follow([]mesh.Sample{{Time: at(3), Desired: 1, Started: 1}}, span{at(0), at(10)}, 2)
	require.Nil(t, a.EnoughReplicasSeconds)
	require.Nil(t, a.FirstConsumingSeconds)
	require.Equal(t, new(3.0), a.FirstReplicaSeconds)
	require.Equal(t, new(7.0), a.ReplicaSeconds, "up to the end of the wave")
	a = account{}
	a.follow(nil, span{at(0), at(10)}, 1)
	require.Equal(t, account{ReplicaSeconds: new(0.0), ReplicaChanges: new(0), MostReplicas: new(0)}, a)
	require.Nil(t, latePct(tally{published: 3}, tally{published: 3}), "of no messages no share is late")
}

func TestMessagesThatAreNotDoneAreLate(t *testing.T) {
	before := tally{published: 100, done: 100, late: 40}
	require.Equal(t, new(0.0), latePct(before, tally{published: 300, done: 300, late: 40}))
	require.Equal(t, new(15.0), latePct(before, tally{published: 300, done: 280, late: 50}))
}

func TestAnOutageIsJudgedByTheTargetThatFellDeepest(t *testing.T) {
	held := []mesh.Sample{{Time: at(-5), Desired: 6}, {Time: at(200), Desired: 0}}
	shrank := []mesh.Sample{{Time: at(-5), Desired: 5}, {Time: at(30), Desired: 2}, {Time: at(60), Desired: 5}}
	fell := []mesh.Sample{
		{Time: at(-5), Desired: 6},
		{Time: at(57), Desired: 0},
		{Time: at(90), Desired: 1},
		{Time: at(95), Desired: 0},
	}
	outage := span{at(0), at(120)}
	require.Equal(t, fall{OutageMinReplicas: new(6), OutageHadReplicas: new(6), OutageFell: new(0), OutageTargets: new(1)},
		newFall([][]mesh.Sample{held}, outage))
	require.Equal(t, fall{OutageMinReplicas: new(2), OutageHadReplicas: new(5), OutageFell: new(0), OutageTargets: new(2)},
		newFall([][]mesh.Sample{held, shrank}, outage))
	require.Equal(t, fall{
		OutageMinReplicas: new(
			0), OutageHadReplicas: new(5), OutageFell: new(1), OutageTargets: new(3), OutageFirstFallSeconds: new(57.0),
	}, newFall([][]mesh.Sample{held, shrank, fell}, outage))
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
