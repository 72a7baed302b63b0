// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestADecisionComparesTheWaitWithTheObjective(t *testing.T) {
	const met, missed, stalled, unknown = policy.ObjectiveMet, policy.ObjectiveMissed, policy.ObjectiveStalled,
		policy.ObjectiveUnknown
	aged := func(seconds float64) func(*policy.Input) {
		return func(in *policy.Input) {
			in.Reading.OldestAge, in.Reading.OldestAt = backlog.Known(seconds), noon().Add(-20*time.Second)
		}
	}
	idle := func(in *policy.Input) {
		in.Reading.ProcessRate, in.Reading.Consumers = backlog.Known(0), backlog.Known(0)
	}
	// One replica processes 100/s, and the objective is a minute.
	for name, test := range map[string]struct {
		ready   float64
		change  []func(*policy.Input)
		floor   float64
		want    policy.Objective
		failing bool
		// oldest is the age of a message that is late although others are not, in seconds.
		oldest int
	}{
		"no backlog":                  {ready: 0, want: met},
		"a wait within the objective": {ready: 5_900, want: met},
		"a wait beyond the objective": {ready: 6_100, want: missed},
		"backlog that cannot be done": {ready: 6_100, floor: 6_100, want: met},
		"an old message while others go": {
			ready: 100, change: []func(*policy.Input){aged(61)}, want: missed, oldest: 61,
		},
		"an old message that cannot be": {
			ready: 100, floor: 100, change: []func(*policy.Input){aged(61)}, want: missed, oldest: 61,
		},
		"an old message behind many":        {ready: 6_100, change: []func(*policy.Input){aged(61)}, want: missed},
		"a message that is young":           {ready: 100, change: []func(*policy.Input){aged(59)}, want: met},
		"no processing at zero":             {ready: 1, change: []func(*policy.Input){idle}, want: stalled},
		"no backlog at zero":                {ready: 0, change: []func(*policy.Input){idle}, want: met},
		"only discounted messages, at zero": {ready: 5, floor: 5, change: []func(*policy.Input){idle}, want: met},
		"a message that is delayed": {ready: 100, change: []func(*policy.Input){aged(61), func(in *policy.Input) {
			in.Reading.Delayed = backlog.Known(1)
		}}, want: met},
		"an age beside unknown delays": {ready: 100, change: []func(*policy.Input){aged(61), func(in *policy.Input) {
			in.Reading.Delayed = backlog.Unknown(backlog.ErrNotRequested)
		}}, want: met},
		"an old message on one partition": {ready: 100, change: []func(*policy.Input){aged(61), func(in *policy.Input) {
			in.Reading.Type = backlog.Failover
		}}, want: missed, oldest: 61},
		"a replica that hangs": {ready: 100, change: []func(*policy.Input){func(in *policy.Input) {
			in.Reading.ProcessRate = backlog.Known(0)
		}}, want: stalled},
		"calls that end with exceptions": {ready: 6_100, change: []func(*policy.Input){func(in *policy.Input) {
			in.Reading.Instances.UserExceptionRate = backlog.Known(9)
			in.Reading.Instances.ProcessRate = backlog.Known(1)
		}}, want: missed, failing: true},
		"an unknown backlog": {change: []func(*policy.Input){func(in *policy.Input) {
			in.Reading.Ready = backlog.Unknown(backlog.ErrNoData)
			in.Reading.LeastReady = backlog.Unknown(backlog.ErrNoData)
		}}, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(1, reading(test.ready, 1))
			in.Spec.LatencyObjective.Duration = time.Minute
			for _, change := range test.change {
				change(&in)
			}
			// The state has already learned from the reading, so that it learns nothing here.
			state := policy.State{
				Capacity: learned(100), Arrivals: arrivals(1), ReadAt: noon(), LearnedAt: noon(),
				Floor: policy.Floor{Messages: test.floor},
			}
			decision, _ := policy.Decide(in, state)
			require.Equal(t, test.want, decision.Service.Objective)
			require.Equal(t, test.failing, decision.Service.Failing)
			if test.oldest > 0 {
				require.Equal(t, in.Reading.OldestAt, decision.Service.At, "the age is older than the reading")
				require.Equal(t, decision.Service.At.Add(-time.Duration(test.oldest)*time.Second), decision.Service.Oldest)
			} else {
				require.Zero(t, decision.Service.Oldest)
			}
			if test.oldest == 0 && test.want != missed {
				require.Equal(t, noon(), decision.Service.At)
			}
		})
	}
}

func TestADecisionWithoutAReadingComparesNothing(t *testing.T) {
	in := input(1, reading(0, 0))
	in.Unknown = backlog.ErrUnreachable
	decision, _ := policy.Decide(in, policy.State{})
	require.Zero(t, decision.Service)
}

// Receive queues of slow replicas hold old messages while the whole backlog is small: 22 replicas were held within the
// objective for 58 minutes, with 20 % of the messages late.
func TestReplicasAreNotHeldWithinTheObjectiveWhileLate(t *testing.T) {
	late := func(in *policy.Input) {
		in.Reading.OldestAge, in.Reading.OldestAt = backlog.Known(300), in.Now
	}
	tests := map[string]struct {
		change func(in *policy.Input, state *policy.State)
		held   bool
	}{
		"holds while the backlog is within it": {func(*policy.Input, *policy.State) {}, true},
		"does not while the oldest message is late": {func(in *policy.Input, _ *policy.State) {
			late(in)
		}, false},
		"does not while another message is late than before": {func(in *policy.Input, state *policy.State) {
			late(in)
			state.Oldest = policy.Oldest{At: ago(30 * time.Second), Published: ago(340 * time.Second)}
		}, false},
		"holds while one message is stuck": {func(in *policy.Input, state *policy.State) {
			late(in)
			state.Oldest = policy.Oldest{At: ago(30 * time.Second), Published: ago(300 * time.Second)}
		}, true},
		"holds while messages are only delayed": {func(in *policy.Input, _ *policy.State) {
			late(in)
			in.Reading.Delayed = backlog.Known(1)
		}, true},
		"holds while only discounted messages are old": {func(in *policy.Input, state *policy.State) {
			late(in)
			in.Reading.Ready = backlog.Known(100)
			state.Floor = policy.Floor{Messages: 100}
		}, true},
		"does not while replicas that were started do not consume": {func(in *policy.Input, state *policy.State) {
			in.Reading.Consumers = backlog.Known(4)
			state.Start.Changed = ago(time.Hour)
		}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := input(20, reading(10_000, 1900)), policy.State{Arrivals: arrivals(1900), Capacity: learned(100)}
			in.Reading.Consumers = backlog.Known(20)
			test.change(&in, &state)
			decision, _ := policy.Decide(in, state)
			held := decision.Hold != nil && decision.Hold.Reason == policy.HoldWithinObjective
			require.Equal(t, test.held, held, "%d: %s %+v", decision.Replicas, decision.Equation, decision.Hold)
		})
	}
}
