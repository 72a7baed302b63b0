// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// anyHold is an input that any of the holds may apply to.
func anyHold(r *rand.Rand, in policy.Input) policy.Input {
	window := r.Int32N(3) * r.Int32N(100)
	in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
	in.Spec.MinReplicas = new(r.Int32N(3))
	in.Spec.MaxReplicas = max(in.Spec.MaxReplicas, *in.Spec.MinReplicas)
	in.Reading.Type = []backlog.SubscriptionType{backlog.Shared, backlog.KeyShared, backlog.Exclusive}[r.IntN(3)]
	in.Reading.Throttled, in.Restarts = r.IntN(10) == 0, r.IntN(3) == 0
	in.Reading.Consumers = backlog.Known(float64(r.Int32N(in.CurrentReplicas + 3)))
	in.Reading.Instances.Busy = backlog.Known(r.Float64())
	switch r.IntN(8) {
	case 0:
		in.Reading.Consumers = backlog.Unknown(backlog.ErrPartial)
	case 1:
		in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
	case 2:
		in.Reading.Ready = backlog.Known(0)
		in.Reading.Total, in.Reading.PublishRate = in.Reading.Ready, in.Reading.Ready
		in.Reading.ProcessRate = in.Reading.Ready
	case 3:
		in = partitioned(r, in, 1+r.IntN(12))
	}
	if r.IntN(2) == 0 {
		in.Pods = &policy.Pods{
			Ready: 3, Unready: r.Int32N(3), CrashLooping: r.Int32N(5) / 4, Updating: r.IntN(10) == 0,
			UnreadySince: in.Now.Add(-time.Duration(r.IntN(600)) * time.Second),
		}
	}
	all := []v1alpha1.Strategy{
		{Type: v1alpha1.StrategyCapacity}, backlogStrategy(1 + r.Int64N(1000)), rateStrategy("100"), utilizationStrategy(70),
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	in.Spec.Strategies = all[:1+r.IntN(2)]
	return in
}

// lag is an autoscaler that follows a decision some decisions later, at once or in steps.
type lag struct {
	random *rand.Rand
	left   int
}

func (l *lag) follow(current, decided int32) int32 {
	if l.left--; l.left > 0 || current == decided {
		return current
	}
	if l.random.IntN(3) == 0 {
		return current + (decided-current)/2
	}
	return decided
}

// Without a new reading no decision is reversed, whether or not it was carried out: neither because time passes, nor
// because the autoscaler follows.
func TestNoDecisionIsReversedWithoutNews(t *testing.T) {
	t.Parallel()
	ups, downs := 0, 0
	eachInput(11, func(r *rand.Rand, in policy.Input, state policy.State) {
		if in.Unknown != nil {
			return
		}
		in = anyHold(r, in)
		autoscaler := &lag{random: r, left: r.IntN(8)}
		decided := in.CurrentReplicas
		raised, lowered := false, false
		for range 14 {
			before := state
			var decision policy.Decision
			decision, state = policy.Decide(in, state)
			raised, lowered = raised || decision.Replicas > decided, lowered || decision.Replicas < decided
			require.False(t, raised && lowered, "%d replicas were decided, of %d, and now %+v %+v\n%+v\n%+v", decided,
				in.CurrentReplicas, decision, decision.Hold, before, in)
			decided = decision.Replicas
			in.CurrentReplicas = autoscaler.follow(in.CurrentReplicas, decided)
			in.Now = in.Now.Add(time.Duration(r.ExpFloat64()*r.Float64()*20_000) * time.Millisecond)
		}
		if raised {
			ups++
		}
		if lowered {
			downs++
		}
	})
	require.Greater(t, ups, 500)
	require.Greater(t, downs, 500)
}

// waiting is an input of six replicas a number of seconds after noon, one for each hundred messages, and a state in
// which five were recently needed and are decided.
func waiting(second int, messages float64) (policy.Input, policy.State) {
	in := asking(6, reading(messages, 0), backlogStrategy(100))
	in.Now = noon().Add(time.Duration(second) * time.Second)
	in.Reading.At, in.Reading.Consumers = in.Now, backlog.Known(6)
	lately := []policy.ReplicasAt{{At: noon(), Replicas: 5}}
	return in, policy.State{
		Decided: decided(6, 5), Recommendations: lately, Start: policy.Start{Replicas: 6},
		ReadAt: noon(),
	}
}

// A scale-down from 6 to 5 was reversed before the autoscaler saw it: with a lighter load it was a small part of the
// eventual saving, and the window still needed the rest.
func TestHoldsKeepWhatWasDecided(t *testing.T) {
	unknown := func(in *policy.Input) { in.Unknown = backlog.ErrUnreachable }
	partial := func(in *policy.Input) { in.Reading.Ready = backlog.Unknown(backlog.ErrPartial) }
	paused := func(in *policy.Input) { in.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused} }
	tests := map[string]struct {
		second   int
		messages float64
		change   func(in *policy.Input)
		want     int32
	}{
		"the same load":               {second: 5, messages: 500, want: 5},
		"a lighter load":              {second: 5, messages: 350, want: 5},
		"a lighter load much later":   {second: 70, messages: 450, want: 5},
		"a load for far fewer, later": {second: 91, messages: 150, want: 2},
		"a heavier load":              {second: 5, messages: 650, want: 7},
		"as heavy a load as for six":  {second: 5, messages: 600, want: 6},
		"a rollout began":             {5, 350, func(in *policy.Input) { in.Pods = &policy.Pods{Updating: true} }, 5},
		"the backlog is unknown":      {5, 0, partial, 5},
		"a reading is missing":        {44, 0, unknown, 5},
		"a reading is missing, late":  {45, 0, unknown, 6},
		"a user raised the replicas":  {5, 350, func(in *policy.Input) { in.CurrentReplicas = 9 }, 9},
		"a user lowered the replicas": {5, 350, func(in *policy.Input) { in.CurrentReplicas = 4 }, 4},
		"the rollout is paused":       {5, 350, paused, 6},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := waiting(test.second, test.messages)
			if test.change != nil {
				test.change(&in)
			}
			decision, _ := policy.Decide(in, state)
			require.Equal(t, test.want, decision.Replicas, "%+v", decision.Hold)
		})
	}
}

func TestAScaleUpOutlastsAnOutage(t *testing.T) {
	in, state := waiting(0, 0)
	state.Decided = decided(6, 9)
	for second := 10; second < 300; second += 10 {
		in.Now, in.Unknown = noon().Add(time.Duration(second)*time.Second), backlog.ErrUnreachable
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		require.Equal(t, int32(9), decision.Replicas, "after %d s", second)
	}
}

func TestAnotherLeaderCarriesOutARecentDecision(t *testing.T) {
	tests := map[string]struct {
		second int
		want   int32
	}{"soon": {20, 5}, "much later": {45, 6}}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := waiting(test.second, 350)
			text, err := state.Encode()
			require.NoError(t, err)
			resumed, err := policy.Resume(text, 6, in.Now)
			require.NoError(t, err)
			decision, _ := policy.Decide(in, resumed)
			require.Equal(t, test.want, decision.Replicas, "%+v", decision.Hold)
		})
	}
}

// With a window of 0, each decision on the same answer removed one more replica.
func TestAnAnswerLowersReplicasOnce(t *testing.T) {
	in, state := input(9, reading(0, 100)), policy.State{}
	in.Reading.Consumers = backlog.Known(9)
	in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: new(int32)}}
	lowered := 0
	for second := range 900 {
		in.Now = noon().Add(time.Duration(second) * time.Second)
		if second%10 == 0 {
			in.Reading.At = in.Now
		}
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if decision.Replicas < in.CurrentReplicas {
			require.Equal(t, in.Now, in.Reading.At, "only a new answer removes replicas")
			require.Equal(t, in.CurrentReplicas-1, decision.Replicas)
			lowered++
		}
		in.CurrentReplicas = decision.Replicas
	}
	require.Greater(t, lowered, 2)
}
