// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func failing() Scenario {
	s := scenario()
	s.Seconds, s.Failing = 1500, func(second float64) float64 {
		if second >= 100 && second < 700 {
			return 0.9
		}
		return 0
	}
	return s
}

func exceptions(w *System) (sum float64) {
	for _, instance := range w.InstancesSample().Instances {
		sum += float64(instance.UserExceptions)
	}
	return sum
}

func TestWhatThrowsStaysInTheBacklogAndComesAgainEachMinute(t *testing.T) {
	s := failing()
	s.Initial = 8
	w := New(s, 3)
	to(w, 99)
	require.Zero(t, exceptions(w))
	to(w, 159)
	published, _, entries, _ := counters(t, w)
	require.Greater(t, published, entries)
	require.InDelta(t, 0.9*100*60, entries, 300)
	require.InDelta(t, entries, exceptions(w), 300, "each once")
	sample, err := w.TopicSample(0)
	require.NoError(t, err)
	require.InDelta(t, entries, sample.Partitions[0].Subscriptions[0].UnackedMessages, 300,
		"they are still with their consumers")
	before := exceptions(w)
	to(w, 169)
	require.InDelta(t, 10*(90+90), exceptions(w)-before, 150, "those that are new, and those of a minute ago")
}

func TestRepeatedFailuresKeepReplicasFromWhatIsNew(t *testing.T) {
	w := New(failing(), 3)
	to(w, 400)
	before := w.score.Finished
	to(w, 699)
	require.InDelta(t, 3*50*60, w.again.total+w.nacked(), 600, "what three replicas can try in a minute")
	require.InDelta(t, 100*600, w.queued(), 6000, "and all others wait behind that, the good ones too")
	require.Less(t, w.score.Finished-before, 400.0)
	require.InDelta(t, w.queued()-w.again.total-w.nacked(), w.Processable(), 1e-6)
}

func TestAllSucceedOnceWhatWasMissingIsBack(t *testing.T) {
	w := New(failing(), 3)
	to(w, 700)
	before := exceptions(w)
	w.Scale(20)
	run(w, still)
	require.InDelta(t, before, exceptions(w), 20)
	require.InDelta(t, w.score.Messages, w.score.Finished, 300)
	require.InDelta(t, w.score.Finished, processed(w), 1, "each counted once by the instances")
	require.Zero(t, w.nacked())
}
