// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// pulsing has 400 messages/s for a minute in each period, and 10 in between; a replica processes 50. One pulse begins
// each time that the seconds are a multiple of the period.
func pulsing(period int, low float64) *plant {
	p := newPlant(1, low, 50)
	p.rate = func(second int) float64 {
		if second%period < 60 {
			return 400
		}
		return low
	}
	return p
}

// replicasAt is the desired number at a second.
func replicasAt(p *plant, second int) int32 {
	for _, one := range p.log {
		if one.second >= second {
			return one.decision.Replicas
		}
	}
	return -1
}

const tenMinutes = 600

func TestReplicasAreAddedBeforeAPulse(t *testing.T) {
	p := pulsing(tenMinutes, 10)
	p.run(8*tenMinutes - 10)
	decision := p.log[len(p.log)-1].decision
	require.GreaterOrEqual(t, decision.Replicas, int32(8))
	require.Regexp(t, `^(39\d|40\d)/s expected / \(0.93 x .* per replica\) = `, decision.Equation)
	require.WithinDuration(t, noon().Add(8*tenMinutes*time.Second), decision.Next.Begin, 5*time.Second)
	require.Less(t, replicasAt(p, 8*tenMinutes-200), int32(8), "not long before")
}

func TestAForecastHasNoInfluence(t *testing.T) {
	for name, change := range map[string]func(second int, in *policy.Input){
		"in mode Observe": func(_ int, in *policy.Input) {
			in.Spec.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastObserve}
		},
		"in mode Off": func(_ int, in *policy.Input) {
			in.Spec.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastOff}
		},
		"while some topics are unknown": func(second int, in *policy.Input) {
			if second > 8*tenMinutes-200 {
				in.Reading.Coverage = backlog.Coverage{Topics: 2, Known: 1, Missing: nil}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pulsing(tenMinutes, 10)
			p.change = change
			p.run(8*tenMinutes - 10)
			last := p.log[len(p.log)-1].decision
			require.NotContains(t, last.Equation, "expected")
			require.Equal(t, name != "in mode Off", last.Next != nil)
		})
	}
}

func TestReplicasAreKeptBetweenFrequentPulsesAndRemovedBetweenRareOnes(t *testing.T) {
	frequent := pulsing(120, 10)
	frequent.run(20*120 + 110)
	last := frequent.log[len(frequent.log)-1]
	require.GreaterOrEqual(t, last.decision.Replicas, int32(8))
	require.Contains(t, held(frequent.log), "messages/s are expected at")

	rare := pulsing(3*tenMinutes, 10)
	rare.run(10*3*tenMinutes + 60 + 90)
	require.LessOrEqual(t, rare.log[len(rare.log)-1].decision.Replicas, int32(2), "90 s after the pulse")
}

// held is all messages of holds.
func held(log []poll) string {
	text := ""
	for _, one := range log {
		if one.decision.Hold != nil {
			text += one.decision.Hold.Message + "\n"
		}
	}
	return text
}

// equations are those of all decisions.
func equations(log []poll) string {
	text := ""
	for _, one := range log {
		text += one.decision.Equation + "\n"
	}
	return text
}

func TestReplicasWakeBeforeAPulse(t *testing.T) {
	p := pulsing(2*tenMinutes, 0)
	p.in.Spec.MinReplicas = new(int32(0))
	p.run(8*2*tenMinutes - 200)
	require.Zero(t, p.log[len(p.log)-1].decision.Replicas, "it is idle for long")
	p.run(190)
	last := p.log[len(p.log)-1].decision
	require.GreaterOrEqual(t, last.Replicas, int32(8))
	require.Contains(t, held(p.log)+equations(p.log[len(p.log)-19:]), "/s expected / (0.93 x ")
}

func TestReplicasForAPulseAreNotRemovedAsIdle(t *testing.T) {
	p := pulsing(tenMinutes, 0)
	p.start, p.in.Spec.MinReplicas = 40, new(int32(0))
	p.in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: new(int32(505))}}
	p.run(10 * tenMinutes)
	last := p.log[len(p.log)-10:]
	ordered := slices.IndexFunc(last, func(one poll) bool { return one.decision.Replicas >= 8 })
	require.Less(t, ordered, 7, "the cooldown ends between the order and the pulse")
	for _, one := range last[ordered:] {
		require.GreaterOrEqual(t, one.decision.Replicas, int32(8), "%d s", one.second)
	}
}

func TestOnlyWhatOrdersReplicasForPulsesRemovesThemEarlier(t *testing.T) {
	for name, change := range map[string]func(in *policy.Input){
		"RatePerReplica": func(in *policy.Input) { in.Spec.Strategies = []v1alpha1.Strategy{rateStrategy("50")} },
		"Failover":       func(in *policy.Input) { in.Reading.Type = backlog.Failover },
		"a limit of scale-up": func(in *policy.Input) {
			in.Spec.Behavior = &v1alpha1.Behavior{ScaleUp: &v1alpha1.ScaleUpRules{SelectPolicy: v1alpha1.SelectDisabled}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := pulsing(3*tenMinutes, 10)
			p.run(10*3*tenMinutes + 60)
			p.change = func(_ int, in *policy.Input) { change(in) }
			before := p.log[len(p.log)-1].decision.Replicas
			p.run(60)
			require.NotContains(t, held(p.log[len(p.log)-6:]), "messages/s are expected at")
			require.NotContains(t, equations(p.log[len(p.log)-6:]), "expected")
			require.Positive(t, before)
		})
	}
}

func TestAForeseenPulseNeedsLessHeadroom(t *testing.T) {
	with, without := pulsing(tenMinutes, 90), pulsing(tenMinutes, 90)
	without.change = func(_ int, in *policy.Input) { in.Spec.Forecast = &v1alpha1.Forecast{Mode: v1alpha1.ForecastOff} }
	for _, p := range []*plant{with, without} {
		p.run(14*tenMinutes + 300)
	}
	needed := with.log[len(with.log)-1].decision.Replicas
	require.EqualValues(t, 2, needed)
	require.Greater(t, without.log[len(without.log)-1].decision.Replicas, needed)
}

func TestAPulseThatEndsWhileATopicIsUnknownIsNotStretched(t *testing.T) {
	p := pulsing(tenMinutes, 10)
	p.change = func(second int, in *policy.Input) {
		if second < 6*tenMinutes+20 || second > 6*tenMinutes+300 {
			return
		}
		in.Reading.Coverage = backlog.Coverage{Topics: 2, Known: 1, Missing: nil}
		in.Reading.PublishRate = backlog.AtLeast(0, backlog.ErrNoData)
		in.Reading.LatestPublishRate = in.Reading.PublishRate
	}
	p.run(12*tenMinutes - 10)
	for _, one := range p.log {
		if next := one.decision.Next; next != nil {
			require.Greater(t, next.PerSecond, 300.0, "%d s", one.second)
		}
	}
	require.NotNil(t, p.log[len(p.log)-1].decision.Next)
}
