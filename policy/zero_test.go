// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// drain is the time in seconds to drain the backlog of an objective of a minute.
const drain = 24.0

// idle is a policy with minReplicas 0 a number of seconds after noon, with nothing to do.
func idle(current int32, seconds int) policy.Input {
	in := input(current, reading(0, 0))
	in.Spec.MinReplicas = new(int32)
	in.Now = noon().Add(time.Duration(seconds) * time.Second)
	in.Reading.At = in.Now
	in.Reading.Consumers = backlog.Known(float64(current))
	return in
}

// wentToZero is after how many seconds the last replica was removed, of ten minutes with a poll every ten seconds; -1
// for never.
func wentToZero(change func(second int, in *policy.Input)) int {
	state, current := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}, int32(1)
	for second := 0; second <= 600; second += 10 {
		in := idle(current, second)
		change(second, &in)
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if decision.Replicas == 0 {
			return second
		}
		current = decision.Replicas
	}
	return -1
}

func TestTheLastReplicaIsRemovedOnAnExactCountOnly(t *testing.T) {
	some := backlog.Known(0.1)
	tests := map[string]struct {
		change func(second int, in *policy.Input)
		want   int
	}{
		"scales to zero after five idle minutes": {func(int, *policy.Input) {}, 300},
		"stays where minReplicas is 1": {func(_ int,
			in *policy.Input,
		) {
			in.Spec.MinReplicas = new(int32(1))
		}, -1},
		"stays while messages arrive": {
			func(_ int, in *policy.Input) { in.Reading.PublishRate = some },
			-1,
		},
		"stays while messages are processed": {
			func(_ int, in *policy.Input) { in.Reading.ProcessRate = some },
			-1,
		},
		"stays while messages are ready": {func(_ int, in *policy.Input) {
			in.Reading.Total,
				in.Reading.Ready = backlog.Known(1), backlog.Known(1)
		}, -1},
		"stays while the backlog has only a quick count": {func(_ int,
			in *policy.Input,
		) {
			in.Reading.ExactAt = time.Time{}
		}, -1},
		"stays while messages are delayed": {func(_ int, in *policy.Input) {
			in.Reading.Total, in.Reading.Delayed = backlog.Known(5), backlog.Known(5)
		}, -1},
		"stays while the backlog is unknown": {func(_ int,
			in *policy.Input,
		) {
			in.Reading.Total = backlog.Unknown(backlog.ErrPartial)
		}, -1},
		"stays while the arrivals are unknown": {func(_ int,
			in *policy.Input,
		) {
			in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
		}, -1},
		"stays while the process rate is unknown": {func(_ int,
			in *policy.Input,
		) {
			in.Reading.ProcessRate = backlog.Unknown(backlog.ErrNoRate)
		}, -1},
		"stays while Pulsar does not answer": {
			func(_ int, in *policy.Input) { in.Unknown = backlog.ErrUnreachable },
			-1,
		},
		"stays while answers are old": {func(_ int,
			in *policy.Input,
		) {
			in.Reading.At = in.Now.Add(-31 * time.Second)
		}, -1},
		"stays while newer answers are in trouble": {func(_ int,
			in *policy.Input,
		) {
			in.Reading.Trouble = errors.New("connection refused")
		}, -1},
		"restarts the cooldown after a message": {func(second int, in *policy.Input) {
			if second == 200 {
				in.Reading.PublishRate = some
			}
		}, 510},
		"scales to zero despite one old answer": {func(second int, in *policy.Input) {
			if second == 200 {
				in.Reading.At = in.Now.Add(-time.Minute)
			}
		}, 300},
		"restarts the cooldown after a long time of old answers": {func(second int, in *policy.Input) {
			if 170 <= second && second <= 200 {
				in.Reading.At = in.Now.Add(-time.Minute)
			}
		}, 510},
		"scales to zero despite a topic that was briefly unknown": {func(second int, in *policy.Input) {
			if second%60 == 20 {
				in.Reading = fixture.Partial(in.Reading, backlog.ErrNoData)
			}
		}, 300},
		"stays while a topic is unknown": {func(second int, in *policy.Input) {
			if second > 200 {
				in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
			}
		}, -1},
		"restarts the cooldown after a topic was unknown for long": {func(second int, in *policy.Input) {
			if 170 <= second && second <= 200 {
				in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
			}
		}, 510},
		"restarts the cooldown after a backlog on the known topics": {func(second int, in *policy.Input) {
			if second == 200 {
				in.Reading.Total = backlog.Known(1)
				in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
			}
		}, 510},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, wentToZero(test.change)) })
	}
}

func TestReplicasWakeForABacklog(t *testing.T) {
	waiting := func(messages float64) policy.Input {
		in := idle(0, 0)
		in.Reading = reading(messages, 0)
		in.Reading.Consumers = backlog.Known(0)
		return in
	}
	shortly := func(in policy.Input) policy.Input {
		in.Spec.LatencyObjective.Duration = 30 * time.Second
		return in
	}
	known := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
	tests := map[string]struct {
		in    policy.Input
		state policy.State
		want  int32
		hold  string
	}{
		"stays at zero without a backlog":   {in: waiting(0), state: known},
		"wakes one for one message":         {in: waiting(1), state: known, want: 1},
		"wakes one without a learned state": {in: waiting(1e6), want: 1, hold: policy.HoldLearning},
		"wakes several if the objective is too short to learn first": {
			in: shortly(waiting(1e6)), want: 4, hold: policy.HoldLearning,
		},
		"wakes no more of them than messages occupy": {
			in: shortly(waiting(250)), want: 2, hold: policy.HoldLearning,
		},
		"wakes one for few messages": {
			in: shortly(waiting(20)), want: 1, hold: policy.HoldLearning,
		},
		"wakes all that drain the backlog within the objective": {in: waiting(36_000), state: known, want: int32(math.Ceil(36_000 / drain / 100))},
		"adds replicas for the arrivals until then": {
			in:    waiting(36_000),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(1000)},
			want:  int32(math.Ceil((1000 + 36_000/drain) / 100)),
		},
		"ignores a rate that the backlog contradicts": {
			in:    waiting(500),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(1000)}, want: 2,
		},
		"does not wake for discounted messages": {
			in: waiting(500),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(0),
				Floor: policy.Floor{Messages: 500},
			}, hold: policy.HoldWakeBackoff,
		},
		"stays at zero while the backlog is unknown": {
			in: func() policy.Input {
				in := waiting(9)
				in.Reading.Ready = backlog.Unknown(backlog.ErrPartial)
				return in
			}(), state: known, hold: policy.HoldUnknown,
		},
		"wakes all for the backlog on the known topics": {
			in: func() policy.Input {
				in := waiting(36_000)
				in.Reading = fixture.Partial(in.Reading, backlog.ErrTopicNotFound)
				return in
			}(),
			state: known, want: int32(math.Ceil(36_000 / drain / 100)),
		},
		"stays at zero without a backlog on the known topics": {
			in: func() policy.Input {
				in := waiting(0)
				in.Reading = fixture.Partial(in.Reading, backlog.ErrTopicNotFound)
				return in
			}(),
			state: known, hold: policy.HoldPartial,
		},
		"wakes one that creates a missing subscription": {
			in: func() policy.Input {
				in := waiting(0)
				in.Reading = fixture.Partial(in.Reading, backlog.ErrSubscriptionNotFound)
				return in
			}(),
			state: known, want: 1,
		},
		"wakes none for a subscription that may exist again": {
			in: func() policy.Input {
				in := waiting(0)
				in.Reading = fixture.Partial(in.Reading, fmt.Errorf("%w: %w", backlog.ErrStale, backlog.ErrSubscriptionNotFound))
				return in
			}(),
			state: known, hold: policy.HoldPartial,
		},
		"does not wake in a back-off for the known topics": {
			in: func() policy.Input {
				in := waiting(9)
				in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
				return in
			}(),
			state: policy.State{
				Capacity: learned(100),
				Zero:     policy.Zero{Backoff: time.Minute, Until: noon().Add(time.Minute)},
			}, hold: policy.HoldWakeBackoff,
		},
		"keeps minReplicas while a topic is unknown": {
			in: func() policy.Input {
				in := waiting(9)
				in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden)
				in.Spec.MinReplicas, in.CurrentReplicas = new(int32(2)), 3
				return in
			}(),
			state: known, want: 3, hold: policy.HoldPartial,
		},
		"does not wake during a back-off": {
			in: waiting(9), state: policy.State{
				Capacity: learned(100),
				Zero:     policy.Zero{Backoff: time.Minute, Until: noon().Add(time.Minute)},
			}, hold: policy.HoldWakeBackoff,
		},
		"wakes on new messages, whatever the back-off": {
			in: func() policy.Input { in := waiting(9); in.Reading.PublishRate = backlog.Known(1); return in }(),
			state: policy.State{
				Capacity: learned(100),
				Zero:     policy.Zero{Backoff: time.Minute, Until: noon().Add(time.Minute)},
			}, want: 1,
		},
		"wakes to minReplicas where that is more than zero": {
			in: func() policy.Input {
				in := waiting(
					0)
				in.Spec.MinReplicas = new(int32(2))
				return in
			}(), state: known, want: 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision, _ := policy.Decide(test.in, test.state)
			require.Equal(t, test.want, decision.Replicas, "%+v", decision)
			if test.hold == "" {
				require.Nil(t, decision.Hold)
			} else {
				require.Equal(t, test.hold, decision.Hold.Reason)
			}
		})
	}
}

// wakesInVain starts and stops replicas that process no message, and returns the pauses between.
func wakesInVain(state policy.State, times int) ([]time.Duration, policy.State) {
	var pauses []time.Duration
	second := 0
	for range times {
		for _, current := range []int32{1, 1, 0} { // woken, idle, back at zero
			in := idle(current, second)
			state.Zero.IdleSince = in.Now.Add(-10 * time.Minute)
			if current == 0 {
				in.Reading.Ready, in.Reading.Total = backlog.Known(5), backlog.Known(5)
			}
			_, state = policy.Decide(in, state)
			second += 10
		}
		pauses = append(pauses, state.Zero.Backoff)
	}
	return pauses, state
}

func TestReplicasWakeByAThresholdWithoutACapacity(t *testing.T) {
	tests := map[string]struct {
		strategies []v1alpha1.Strategy
		want       int32
		why        string
	}{
		"by the backlog": {
			[]v1alpha1.Strategy{{
				Type:              v1alpha1.StrategyBacklogPerReplica,
				BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 100},
			}},
			4, "woken from zero: 380 backlog / 100 per replica = 3.80",
		},
		"by the larger of two": {
			[]v1alpha1.Strategy{
				{Type: v1alpha1.StrategyCapacity},
				{Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 50}},
			},
			8, "woken from zero: 380 backlog / 50 per replica = 7.60",
		},
		"within maxReplicas": {
			[]v1alpha1.Strategy{{
				Type:              v1alpha1.StrategyBacklogPerReplica,
				BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 1},
			}},
			10, "woken from zero: 380 backlog / 1 per replica = 380.00",
		},
		"by one without a threshold": {nil, 1, "woken from zero: 380 backlog, capacity of a replica unknown = 1"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := idle(0, 0)
			in.Spec.Strategies, in.Spec.MaxReplicas = test.strategies, 10
			in.Reading.Ready, in.Reading.Total = backlog.Known(380), backlog.Known(380)
			decision, _ := policy.Decide(in, policy.State{})
			require.Equal(t, test.want, decision.Replicas)
			require.Equal(t, test.why, decision.Equation)
		})
	}
}

func TestDecisionsAboutZeroAreExplained(t *testing.T) {
	waiting := idle(0, 0)
	waiting.Reading.Ready, waiting.Reading.Total = backlog.Known(36_000), backlog.Known(36_000)
	known := policy.State{Capacity: learned(100), Arrivals: arrivals(1000)}
	due := policy.State{
		Zero:      policy.Zero{IdleSince: noon().Add(-6 * time.Minute), IdleAt: noon().Add(-10 * time.Second)},
		Capacity:  learned(100),
		DecidedAt: noon(), ReadAt: noon(),
	}
	for sentence, test := range map[string]struct {
		in    policy.Input
		state policy.State
		want  string
	}{
		"going":   {idle(1, 0), due, "idle for 6m0s = 0"},
		"staying": {idle(0, 0), known, "no backlog = 0"},
		"waking": {
			waiting, known,
			fmt.Sprintf("woken from zero: (1000/s arriving + 36000 backlog / %.0fs) / 100/s per replica = %.2f", drain,
				(1000+36_000/drain)/100),
		},
		"waking for the unknown": {
			waiting,
			policy.State{},
			"woken from zero: 36000 backlog, capacity of a replica unknown = 1",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			decision, _ := policy.Decide(test.in, test.state)
			require.Equal(t, test.want, decision.Equation)
		})
	}
}

func TestAWakeInVainDoublesThePauseBeforeTheNext(t *testing.T) {
	pauses, state := wakesInVain(policy.State{}, 9)
	require.Equal(t, []time.Duration{
		30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 32 * time.Minute,
		time.Hour, time.Hour,
	}, pauses)

	in := idle(0, 5000)
	in.Reading.PublishRate = backlog.Known(1)
	_, state = policy.Decide(in, state)
	require.Zero(t, state.Zero.Backoff, "a new message ends it")
	pauses, _ = wakesInVain(state, 1)
	require.Equal(t, []time.Duration{30 * time.Second}, pauses)
}

func TestAWakeThatDidSomethingIsNotInVain(t *testing.T) {
	in := idle(1, 0)
	in.Reading.ProcessRate = backlog.Known(3)
	_, state := policy.Decide(in, policy.State{})
	require.True(t, state.Zero.Worked)
	state.Zero.IdleSince = noon()
	_, state = policy.Decide(idle(0, 600), state)
	require.Zero(t, state.Zero.Backoff)
	require.False(t, state.Zero.Worked, "the next wake counts separately")
}
