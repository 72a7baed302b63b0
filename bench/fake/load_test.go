// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLoadsSwingAndNothingIsDoneBeforeItIsPublished(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	for i := range 10 {
		l := NewLoad(15+7.5*float64(i), float64(i)/10, Waves{Slow: 0.5, Fast: 0.3}, begun)
		l.Scale(1+i%3, begun)
		least, most := l.mean, l.mean
		before := Counts{}
		for second := range 480 {
			at := begun.Add(time.Duration(second) * time.Second)
			least, most = min(least, l.rate(at)), max(most, l.rate(at))
			now := l.Counts(at)
			require.GreaterOrEqual(t, now.Published, before.Published)
			require.GreaterOrEqual(t, now.Done, before.Done)
			require.GreaterOrEqual(t, now.Backlog(), int64(0))
			require.LessOrEqual(t, now.Done-before.Done, int64(Capacity*now.Replicas+1))
			before = now
		}
		require.Positive(t, least, "one Function always publishes")
		require.Greater(t, most, 1.4*l.mean)
		require.Less(t, least, 0.6*l.mean)
		require.InEpsilon(t, l.mean*479, float64(before.Published), 0.05, "two whole waves")
	}
}

func TestALoadChangesFromNowOn(t *testing.T) {
	begun := time.Unix(1_800_000_000, 0)
	l := NewLoad(10, 0, Waves{}, begun)
	l.Publish(20, begun.Add(10*time.Second))
	require.Equal(t, Counts{Published: 300, Done: 300, Replicas: 1}, l.Counts(begun.Add(20*time.Second)))
}
