// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// happened returns a run of 10 s: two more replicas from second 4 on. One of them starts, and the other is removed at
// second 8.
func happened() outcome {
	s := all()[0].lasting(10 * time.Second)
	return outcome{
		scenario: s, begun: begun(), ended: begun().Add(10 * time.Second),
		timeline: []pods.Sample{
			state(-5, 1, 0, 0), state(-4, 1, 1, 0), state(-1, 1, 1, 1),
			state(4, 3, 1, 1), state(4.5, 3, 3, 1), state(6, 3, 3, 2), state(8, 2, 3, 2), state(8.25, 2, 2, 2), state(11, 9, 9,
				9),
		},
		counts: []counted{
			{at: 500 * time.Millisecond, published: 20, done: 21},
			{at: 2500 * time.Millisecond, published: 100, done: 60},
			{at: 9900 * time.Millisecond, published: 500, done: 500},
		},
		published: 500, done: 490, late: 15,
	}
}

func TestScoreIsOfTheTimeOfTheLoadAlone(t *testing.T) {
	s := happened().score()
	require.InDelta(t, (4.5+3*3.75+2*1.75)/3600, *s.ReplicaHours, 1e-9)
	require.InDelta(t, 2, *s.Actions, 0)
	require.InDelta(t, 3, *s.MaxReplicas, 0)
	require.InDelta(t, 5, *s.LatePct, 1e-9, "15 late and 10 unprocessed")
}

func TestALateShareOfNothingIsUnknown(t *testing.T) {
	o := happened()
	o.published, o.done, o.late = 0, 0, 0
	require.Nil(t, o.score().LatePct)
}

func TestTheTraceHasWhatHeldAtTheEndOfEachSecond(t *testing.T) {
	got := happened().trace()
	require.Equal(t, []float64{1, 1, 1, 1, 3, 3, 3, 3, 2, 2}, got.Real)
	require.Equal(t, []float64{1, 1, 1, 1, 1, 2, 2, 2, 2, 2}, got.RealConsuming)
	require.Equal(t, []float64{0, 0, 40, 40, 40, 40, 40, 40, 40, 0}, got.RealBacklog)
	require.Equal(t, []float64{40, 40, 40, 240, 240, 240, 240, 40, 40, 40}, got.Rate)
}

func TestATraceWithoutAnythingIsStillOfFullLength(t *testing.T) {
	o := happened()
	o.timeline, o.counts = nil, nil
	got := o.trace()
	require.Equal(t, make([]float64, 10), got.Real)
	require.Equal(t, make([]float64, 10), got.RealBacklog)
	require.InDelta(t, 0, *o.score().ReplicaHours, 0)
}

func TestWhatArrivedIsSpreadEvenlyBetweenTwoLooks(t *testing.T) {
	got := happened().trace().Arrived
	require.Len(t, got, 10)
	require.InDelta(t, 20+20, got[0], 1e-9, "20 in the first half, and as many of the 80 in the next two seconds")
	require.InDelta(t, 40, got[1], 1e-9)
	sum := 0.0
	for _, messages := range got {
		sum += messages
	}
	require.InDelta(t, 500, sum, 1e-9)
	o := happened()
	o.counts = nil
	require.Nil(t, o.arrived())
}
