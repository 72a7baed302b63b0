// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// to steps to a second.
func to(system *System, second int) {
	for system.Second() < second {
		system.Step()
	}
}

func TestAPodIsReadyHalfWayToConsuming(t *testing.T) {
	system := New(scenario(), 5)
	to(system, 10)
	require.Equal(t, Pods{Ready: 3}, system.Pods())
	system.Scale(4)
	r := system.set.replicas[3]
	require.InDelta(t, float64(r.consumes-10)/2, float64(r.ready-10), 1)
	to(system, r.ready-1)
	require.Equal(t, Pods{Ready: 3, Unready: 1, UnreadySince: at(10)}, system.Pods())
	to(system, r.ready)
	require.Equal(t, Pods{Ready: 4}, system.Pods())
	require.Len(t, system.set.active, 3, "it is ready and does not consume")
	to(system, r.consumes)
	require.Len(t, system.set.active, 4)
}

func TestPendingPodsAreUnreadyAllTheWhile(t *testing.T) {
	s := scenario()
	s.Pending = Spans{{From: 5, To: 300}}
	system := New(s, 5)
	to(system, 4)
	system.Scale(4)
	to(system, 100)
	require.Equal(t, Pods{Ready: 4}, system.Pods(), "the one that was started before")
	system.Scale(6)
	to(system, 300)
	require.Equal(t, Pods{Ready: 4, Unready: 2, UnreadySince: at(100)}, system.Pods())
	require.Len(t, system.set.active, 4)
	to(system, 400)
	require.Equal(t, Pods{Ready: 6}, system.Pods())
	require.Len(t, system.set.active, 6)
}

func TestACrashingReplicaWaitsLongerEachTime(t *testing.T) {
	s := scenario()
	s.Crashing, s.Initial, s.Rate = 1, 1, Constant(10)
	system := New(s, 5)
	r := system.set.replicas[0]
	var waits, consumed []int
	since := 0
	for range 3000 {
		before := system.Pods()
		system.Step()
		now := system.Pods()
		if now.CrashLooping > before.CrashLooping {
			since = system.Second()
			require.Equal(t, 1, now.Unready)
			require.Equal(t, at(since), now.UnreadySince)
		}
		if now.CrashLooping < before.CrashLooping {
			waits = append(waits, system.Second()-since)
			require.Zero(t, now.Unready, "its container runs again")
		}
		if system.Second() == r.consumes {
			consumed = append(consumed, system.Second())
		}
	}
	require.Equal(t, []int{10, 20, 40, 80, 160, 300, 300, 300, 300}, waits[:9],
		"the first time it was started again at once")
	require.GreaterOrEqual(t, len(consumed), 9)
}

func TestPodsAreBeingReplacedUntilAllAreReady(t *testing.T) {
	s := scenario()
	s.RestartsOnScale = true
	system := New(s, 5)
	to(system, 10)
	require.False(t, system.Pods().Updating)
	system.Scale(4)
	require.True(t, system.Pods().Updating)
	to(system, 200)
	require.False(t, system.Pods().Updating)
	require.Len(t, system.set.active, 4)
}

func TestStartTimesHaveTheirMean(t *testing.T) {
	s := scenario()
	s.Start = 40 * time.Second
	system := New(s, 9)
	sum, squares := 0.0, 0.0
	const draws = 20000
	for range draws {
		took := system.set.startTime()
		sum, squares = sum+took, squares+took*took
	}
	mean := sum / draws
	require.InDelta(t, 40, mean, 0.3)
	require.InDelta(t, 10*10, squares/draws-mean*mean, 4, "a coefficient of variation of 1/4")
}

func TestReplicasThatStartInABadTimeNeverConsume(t *testing.T) {
	s := scenario()
	s.CrashingStarts = Spans{{From: 0, To: 500}}
	system := New(s, 5)
	to(system, 10)
	system.Scale(6)
	crashing := 0
	for system.Second() < 499 {
		system.Step()
		require.Len(t, system.set.active, 3, "those that ran go on")
		crashing = max(crashing, system.Pods().CrashLooping)
	}
	require.Equal(t, 3, crashing)
	require.Equal(t, 3, system.InstancesSample().Silent)
	require.Zero(t, system.Processable(), "more would be of no use")
	to(system, 500+longestBackOff+60)
	require.Len(t, system.set.active, 6, "the kubelet tried again")
	require.Equal(t, Pods{Ready: 6}, system.Pods())
}
