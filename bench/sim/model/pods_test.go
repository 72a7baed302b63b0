// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// to steps to a second.
func to(w *System, second int) {
	for w.Second() < second {
		w.Step()
	}
}

func TestAPodIsReadyHalfWayToConsuming(t *testing.T) {
	w := New(scenario(), 5)
	to(w, 10)
	require.Equal(t, Pods{}, w.Pods())
	w.Scale(4)
	r := w.replicas[3]
	require.InDelta(t, float64(r.consumes-10)/2, float64(r.ready-10), 1)
	to(w, r.ready-1)
	require.Equal(t, Pods{Unready: 1, UnreadySince: at(10)}, w.Pods())
	to(w, r.ready)
	require.Equal(t, Pods{}, w.Pods())
	require.Len(t, w.active, 3, "it is ready and does not consume")
	to(w, r.consumes)
	require.Len(t, w.active, 4)
}

func TestPendingPodsAreUnreadyAllTheWhile(t *testing.T) {
	s := scenario()
	s.Pending = Spans{{From: 5, To: 300}}
	w := New(s, 5)
	to(w, 4)
	w.Scale(4)
	to(w, 100)
	require.Zero(t, w.Pods(), "the one that was started before")
	w.Scale(6)
	to(w, 300)
	require.Equal(t, Pods{Unready: 2, UnreadySince: at(100)}, w.Pods())
	require.Len(t, w.active, 4)
	to(w, 400)
	require.Zero(t, w.Pods())
	require.Len(t, w.active, 6)
}

func TestACrashingReplicaWaitsLongerEachTime(t *testing.T) {
	s := scenario()
	s.Crashing, s.Initial, s.Rate = 1, 1, Constant(10)
	w := New(s, 5)
	r := w.replicas[0]
	var waits, consumed []int
	since := 0
	for range 3000 {
		before := w.Pods()
		w.Step()
		now := w.Pods()
		if now.CrashLooping > before.CrashLooping {
			since = w.Second()
			require.Equal(t, 1, now.Unready)
			require.Equal(t, at(since), now.UnreadySince)
		}
		if now.CrashLooping < before.CrashLooping {
			waits = append(waits, w.Second()-since)
			require.Zero(t, now.Unready, "its container runs again")
		}
		if w.Second() == r.consumes {
			consumed = append(consumed, w.Second())
		}
	}
	require.Equal(t, []int{10, 20, 40, 80, 160, 300, 300, 300, 300}, waits[:9],
		"the first time it was started again at once")
	require.GreaterOrEqual(t, len(consumed), 9)
}

func TestPodsAreBeingReplacedUntilAllAreReady(t *testing.T) {
	s := scenario()
	s.RestartsOnScale = true
	w := New(s, 5)
	to(w, 10)
	require.False(t, w.Pods().Updating)
	w.Scale(4)
	require.True(t, w.Pods().Updating)
	to(w, 200)
	require.False(t, w.Pods().Updating)
	require.Len(t, w.active, 4)
}

func TestStartTimesAreAsLongOnAverageAsTold(t *testing.T) {
	s := scenario()
	s.Start = 40 * time.Second
	w := New(s, 9)
	sum, squares := 0.0, 0.0
	const draws = 20000
	for range draws {
		took := w.startTime()
		sum, squares = sum+took, squares+took*took
	}
	mean := sum / draws
	require.InDelta(t, 40, mean, 0.3)
	require.InDelta(t, 10*10, squares/draws-mean*mean, 4, "a coefficient of variation of 1/4")
}

func TestReplicasThatStartInABadTimeNeverConsume(t *testing.T) {
	s := scenario()
	s.CrashingStarts = Spans{{From: 0, To: 500}}
	w := New(s, 5)
	to(w, 10)
	w.Scale(6)
	crashing := 0
	for w.Second() < 499 {
		w.Step()
		require.Len(t, w.active, 3, "those that ran go on")
		crashing = max(crashing, w.Pods().CrashLooping)
	}
	require.Equal(t, 3, crashing)
	require.Equal(t, 3, w.InstancesSample().Silent)
	require.Zero(t, w.Processable(), "more would be of no use")
	to(w, 500+longestBackOff+60)
	require.Len(t, w.active, 6, "the kubelet tried again")
	require.Zero(t, w.Pods())
}
