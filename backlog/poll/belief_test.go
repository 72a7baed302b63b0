// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// falseAt is when answers are falsified: after the load has been steady for long.
const falseAt = 900

func steady(perSecond float64) func(int) float64 { return func(int) float64 { return perSecond } }

// lie changes an answer, or makes an error of it.
type lie func(detail backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error)

// eachPartition changes all partitions of an answer.
func eachPartition(change func(*backlog.PartitionSample, *backlog.SubscriptionSample)) lie {
	return func(_ backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error) {
		for i := range said.Partitions {
			change(&said.Partitions[i], &said.Partitions[i].Subscriptions[0])
		}
		return said, nil
	}
}

func TestWrongAnswersDecideNothing(t *testing.T) {
	implausible := func(backlog.Detail, backlog.TopicSample) (backlog.TopicSample, error) {
		return backlog.TopicSample{}, fmt.Errorf("%w: msgBacklog is 9223372036854775807", backlog.ErrImplausible)
	}
	backlogOf := func(entries int64) lie {
		return eachPartition(func(_ *backlog.PartitionSample, s *backlog.SubscriptionSample) { s.BacklogEntries = entries })
	}
	counters := func(published, delivered int64) lie {
		return eachPartition(func(p *backlog.PartitionSample, s *backlog.SubscriptionSample) {
			p.PublishedMessages += published
			s.DeliveredMessages += delivered
		})
	}
	zero := eachPartition(func(p *backlog.PartitionSample, s *backlog.SubscriptionSample) {
		p.PublishedMessages, s.DeliveredMessages = 0, 0
	})
	allZero := eachPartition(func(p *backlog.PartitionSample, s *backlog.SubscriptionSample) {
		p.PublishedMessages, s.DeliveredMessages, s.BacklogEntries, s.UnackedMessages = 0, 0, 0, 0
	})
	fewer := func(_ backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error) {
		said.Partitions = said.Partitions[:2]
		return said, nil
	}
	var frozen *backlog.TopicSample
	cached := func(detail backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error) {
		if detail.Has(backlog.Age) {
			return said, nil
		}
		if frozen == nil {
			frozen = &said
		}
		at := said.At
		said = *frozen
		said.At, said.Detail = at, detail
		return said, nil
	}
	const once, minute, long = 1, 60, 300 // a length in seconds; once is one answer
	tests := map[string]struct {
		lie    lie
		length int
		// every is which of the answers is falsified.
		every int
	}{
		"a number above 2^53":                     {implausible, once, 1},
		"a backlog of 10^12":                      {backlogOf(1e12), once, 1},
		"a backlog of 10^12 in one of six":        {backlogOf(1e12), minute, 6},
		"a backlog of 0":                          {backlogOf(0), once, 1},
		"counters that are a million too high":    {counters(1e6, 1e6), once, 1},
		"published a million too high":            {counters(1e6, 0), once, 1},
		"delivered a million too high":            {counters(0, 1e6), once, 1},
		"one in six a million too high":           {counters(1e6, 1e6), minute, 6},
		"counters at 0":                           {zero, once, 1},
		"counters and backlog at 0":               {allZero, once, 1},
		"counters and backlog at 0 in one of two": {allZero, minute, 2},
		"counters always 0":                       {zero, long, 1},
		"a cache answers one of two calls":        {cached, long, 1},
		"two of four partitions":                  {fewer, once, 1},
		"two of four partitions in one of six":    {fewer, minute, 6},
		"two of four partitions for a minute":     {fewer, minute, 1},
	}
	twin := modelled(t, 25*time.Minute, 1, func() *pulsarModel { return newPulsarModel(steady(290), 7) })
	require.Zero(t, twin.looks, "a steady load is not doubted")
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			frozen = nil
			last := 0
			h := modelled(t, 25*time.Minute, 1, func() *pulsarModel {
				m, seen := newPulsarModel(steady(290), 7), 0
				m.falsify = func(second int, detail backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error) {
					if second < falseAt || second >= falseAt+tt.length && (tt.length > once || seen > 0) {
						return said, nil
					}
					if seen++; seen%tt.every != 0 {
						return said, nil
					}
					last = second
					return tt.lie(detail, said)
				}
				return m
			})
			t.Logf("second looks of %d fetches: %+v", h.fetches, h.looks)
			require.NotZero(t, last, "nothing was falsified")
			requireSameReplicas(t, twin, h)
			if tt.length < long && tt.every != 1 || tt.length == once {
				requireSameLearned(t, twin, h, last+21)
			}
		})
	}
}

// requireSameReplicas compares decisions with those of a twin whose answers were true: they differ by one at most.
func requireSameReplicas(t *testing.T, twin, h history) {
	t.Helper()
	require.Len(t, h.moments, len(twin.moments))
	for i, now := range h.moments {
		require.InDelta(t, twin.moments[i].decision.Replicas, now.decision.Replicas, 1, "at %ds: %s, hold %+v, trouble %v",
			now.second, now.decision.Equation, now.decision.Hold, now.reading.Trouble)
	}
}

// requireSameLearned compares what was learned from a second on with that of the twin.
func requireSameLearned(t *testing.T, twin, h history, from int) {
	t.Helper()
	for i, now := range h.moments {
		if now.second < from {
			continue
		}
		a, b := twin.moments[i].state, now.state
		for what, values := range map[string][2]float64{
			"fast":      {a.Arrivals.Fast, b.Arrivals.Fast},
			"slow":      {a.Arrivals.Slow, b.Arrivals.Slow},
			"deviation": {a.Arrivals.Deviation + 0.02*a.Arrivals.Fast, b.Arrivals.Deviation + 0.02*a.Arrivals.Fast}, // noise
			"peak":      {a.Arrivals.Peak, b.Arrivals.Peak},
			"rise":      {a.Arrivals.Rise, b.Arrivals.Rise},
			"capacity":  {a.Capacity.MessagesPerSecond, b.Capacity.MessagesPerSecond},
			"coverage":  {a.Capacity.Coverage, b.Capacity.Coverage},
		} {
			require.InEpsilon(t, values[0], values[1], 0.1, "%s at %ds", what, now.second)
		}
		require.Equal(t, a.Plateau.Ceiling, b.Plateau.Ceiling)
	}
}
