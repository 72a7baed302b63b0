// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// falseAt is when answers are falsified: after the load has been steady for long.
const falseAt = 900

func steady(perSecond float64) func(int) float64 { return func(int) float64 { return perSecond } }

// lie changes an answer, or returns an error for it.
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
		// every selects the answers that are falsified.
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
	require.Empty(t, twin.implausible, "a steady load needs no second answer")
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
			t.Logf("implausible answers of %d fetches: %+v", h.fetches, h.implausible)
			require.NotZero(t, last, "nothing was falsified")
			requireSameReplicas(t, twin, h)
			if tt.length < long && tt.every != 1 || tt.length == once {
				requireSameLearned(t, twin, h, last+21)
			}
		})
	}
}

// requireSameReplicas compares decisions with those of a run with true answers: they differ by at most one.
func requireSameReplicas(t *testing.T, twin, h history) {
	t.Helper()
	require.Len(t, h.moments, len(twin.moments))
	for i, now := range h.moments {
		require.InDelta(t, twin.moments[i].decision.Replicas, now.decision.Replicas, 1, "at %ds: %s, hold %+v, trouble %v",
			now.second, now.decision.Equation, now.decision.Hold, now.reading.Trouble)
	}
}

// requireSameLearned compares the learned state from a second on with that of a run with true answers.
func requireSameLearned(t *testing.T, twin, h history, from int) {
	t.Helper()
	for i, now := range h.moments {
		if now.second < from {
			continue
		}
		a, b := twin.moments[i].state, now.state
		for what, values := range map[string][2]float64{
			"rate":     {a.Arrivals.Rate, b.Arrivals.Rate},
			"noise":    {max(1, a.Arrivals.Dispersion), max(1, b.Arrivals.Dispersion)}, // less than 1 counts as 1
			"peak":     {a.Arrivals.Peak, b.Arrivals.Peak},
			"rise":     {a.Arrivals.Rise, b.Arrivals.Rise},
			"capacity": {a.Capacity.MessagesPerSecond, b.Capacity.MessagesPerSecond},
			"coverage": {a.Capacity.Coverage, b.Capacity.Coverage},
		} {
			require.InEpsilon(t, values[0], values[1], 0.1, "%s at %ds", what, now.second)
		}
		require.Equal(t, a.Plateau.Ceiling(), b.Plateau.Ceiling())
	}
}

func TestUsualLoadsAreRarelyImplausible(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	tests := map[string]func(second int) float64{
		"a steady one":                    steady(290),
		"few messages":                    steady(0.5),
		"a job of 2,000 every minute":     func(second int) float64 { return when(second%60 == 0, 2000, 0) },
		"a job of 5,000 every 20 minutes": func(second int) float64 { return when(second%1200 == 0, 5000, 0) },
		"a job of 5,000 every hour":       func(second int) float64 { return when(second%3600 == 0, 5000, 0) },
		"steps of ten times, up and down": func(second int) float64 { return when(second/900%2 == 0, 20, 200) },
		"pulses from nothing":             func(second int) float64 { return when(second/300%2 == 0, 0, 200) },
		"a sine with a period of an hour": func(second int) float64 {
			return 150 + 140*math.Sin(2*math.Pi*float64(second)/3600)
		},
		"bursts at random": func(int) float64 { return when(random.IntN(50) == 0, 3000, 20) },
		"more than replicas can do for ten minutes": func(second int) float64 {
			return when(second/600%6 == 2, 1200, 100)
		},
	}
	for name, load := range tests {
		t.Run(name, func(t *testing.T) {
			h := modelled(t, 3*time.Hour, 1, func() *pulsarModel { return newPulsarModel(load, 3) })
			t.Logf("implausible answers of %d fetches: %+v", h.fetches, h.implausible)
			require.Zero(t, h.implausible[poll.Unresolved]+h.implausible[poll.Failed], "a true answer is confirmed")
			require.LessOrEqual(t, h.implausible[poll.Resolved]*100, h.fetches, "less than 1 %")
		})
	}
}

func when(yes bool, this, other float64) float64 {
	if yes {
		return this
	}
	return other
}

func TestAnImplausibleAnswerDelaysNoWake(t *testing.T) {
	const burstAt = 1200
	burst := func(second int) float64 { return when(second == burstAt, 20_000, when(second < 60, 100, 0)) }
	unanswered := func(backlog.Detail, backlog.TopicSample) (backlog.TopicSample, error) {
		return backlog.TopicSample{}, fmt.Errorf("%w: no answer within 3s", backlog.ErrUnreachable)
	}
	tests := map[string]struct {
		// second changes the answer to the second request.
		second lie
		check  func(*testing.T, moment)
	}{
		"a second answer that agrees gives the size": {nil, func(t *testing.T, m moment) {
			require.Greater(t, m.decision.Replicas, int32(5))
			require.NoError(t, m.reading.Trouble)
		}},
		"without a second answer it is one replica": {unanswered, func(t *testing.T, m moment) {
			require.Equal(t, int32(1), m.decision.Replicas)
			require.Contains(t, m.decision.Equation, "unconfirmed backlog")
			require.Zero(t, known(t, m.reading.Ready), "nothing is learned of the first answer")
			require.ErrorIs(t, m.reading.Trouble, backlog.ErrUnreachable)
			require.ErrorIs(t, m.reading.Trouble, backlog.ErrImplausible)
			require.ErrorContains(t, m.reading.Trouble, "msgInCounter grew by")
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := modelled(t, 21*time.Minute, 0, func() *pulsarModel {
				m, before := newPulsarModel(burst, 2), backlog.TopicSample{}
				m.falsify = func(second int, detail backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error) {
					again := said.At.Sub(before.At) < 5*time.Second
					before = said
					if again && second >= burstAt && tt.second != nil {
						return tt.second(detail, said)
					}
					return said, nil
				}
				return m
			})
			for _, m := range h.moments {
				if m.second < burstAt && m.second > burstAt-60 {
					require.Zero(t, m.decision.Replicas)
				}
				if m.decision.Replicas > 0 && m.second > burstAt-60 {
					require.LessOrEqual(t, m.second, burstAt+11, "one poll after the burst")
					tt.check(t, m)
					return
				}
			}
			require.Fail(t, "it never woke")
		})
	}
}

func TestNothingIsLearnedFromContradictoryAnswers(t *testing.T) {
	noise := rand.New(rand.NewPCG(5, 6))
	h := modelled(t, 25*time.Minute, 1, func() *pulsarModel {
		m := newPulsarModel(steady(290), 7)
		m.falsify = func(second int, detail backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error) {
			if second < falseAt || second > falseAt+30 {
				return said, nil
			}
			return eachPartition(func(p *backlog.PartitionSample, _ *backlog.SubscriptionSample) {
				p.PublishedMessages += noise.Int64N(1e12)
			})(detail, said)
		}
		return m
	})
	require.NotZero(t, h.implausible[poll.Unresolved])
	for _, m := range h.moments {
		require.InDelta(t, 7, m.decision.Replicas, 1)
		if m.second > falseAt+11 && m.second < falseAt+30 {
			require.ErrorIs(t, m.reading.Trouble, backlog.ErrImplausible)
		}
	}
}
