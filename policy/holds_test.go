// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// wanting is an input with four replicas of 100/s and a load that needs more or fewer, and a state that has seen only
// this.
func wanting(rate, ready float64) (policy.Input, policy.State) {
	in := input(4, reading(ready, rate))
	in.Reading.Consumers = backlog.Known(4)
	return in, policy.State{
		Capacity: learned(100), Arrivals: arrivals(rate), Start: policy.Start{Replicas: 4, Seconds: 20, Count: 3},
		Recommendations: []policy.ReplicasAt{},
	}
}

func ago(t time.Duration) time.Time { return noon().Add(-t) }

func TestHolds(t *testing.T) {
	const more, fewer = 800.0, 90.0
	updating := &policy.Pods{Updating: true}
	tests := map[string]struct {
		rate, ready float64
		change      func(in *policy.Input, state *policy.State)
		hold        string
		message     string // a part of it
	}{
		"up: dispatch is blocked": {
			rate: more, change: func(in *policy.Input, _ *policy.State) { in.Reading.Blocked = true },
			hold: policy.HoldDispatchLimited, message: "acknowledge messages in the function",
		},
		"up: dispatch is throttled": {
			rate: more,
			change: func(in *policy.Input, _ *policy.State) {
				in.Reading.Throttled, in.Reading.ProcessRate = true, backlog.Known(200)
			},
			hold: policy.HoldDispatchLimited, message: "a dispatch rate limit",
		},
		"up for a backlog: one replica of four is in a crash loop": {
			rate: 340, ready: 30_000, change: func(in *policy.Input,
				_ *policy.State,
			) {
				in.Pods = &policy.Pods{CrashLooping: 1}
			}, hold: policy.HoldNotStarting,
		},
		"up for a backlog: one of four has not started for long": {
			rate: 340, ready: 30_000, change: func(in *policy.Input, _ *policy.State) {
				in.Pods = &policy.Pods{Unready: 1, UnreadySince: ago(6 * time.Minute)}
			},
			hold: policy.HoldNotStarting,
		},
		"up, not held: one of four has not started for a short time": {
			rate: more, change: func(in *policy.Input, _ *policy.State) {
				in.Pods = &policy.Pods{Unready: 1, UnreadySince: ago(4 * time.Minute)}
			},
		},
		"up for what arrives, not held: one replica of four is in a crash loop": {
			rate: more, change: func(in *policy.Input, _ *policy.State) { in.Pods = &policy.Pods{CrashLooping: 1} },
		},
		"up, not held: nothing is wrong with the pods": {
			rate:   more,
			change: func(in *policy.Input, _ *policy.State) { in.Pods = &policy.Pods{} },
		},
		"up, not held: pods are replaced": {
			rate:   more,
			change: func(in *policy.Input, _ *policy.State) { in.Pods = updating },
		},
		"down: pods are replaced": {
			rate: fewer, change: func(in *policy.Input, _ *policy.State) { in.Pods = updating },
			hold: policy.HoldStabilizing,
		},
		"down: the reading is old": {
			rate: fewer,
			change: func(in *policy.Input,
				_ *policy.State,
			) {
				in.Reading.At = ago(31 * time.Second)
			}, hold: policy.HoldStabilizing,
		},
		"down: what arrives is not known": {
			rate: fewer, change: func(in *policy.Input,
				_ *policy.State,
			) {
				in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
			}, hold: policy.HoldUnknown, message: "the publish rate is unknown",
		},
		"down, not held: dispatch is blocked": {
			rate:   fewer,
			change: func(in *policy.Input, _ *policy.State) { in.Reading.Blocked = true },
		},
		"down, not held: a replica crashes": {
			rate:   fewer,
			change: func(in *policy.Input, _ *policy.State) { in.Pods = &policy.Pods{CrashLooping: 1} },
		},
		"down: more was needed within the window": {
			rate: fewer,
			change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(29 * time.Second), Replicas: 4}}
			},
			hold: policy.HoldStabilizing,
		},
		"down, not held: more was needed before the window": {
			rate: fewer,
			change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(60 * time.Second), Replicas: 4}}
			},
		},
		"up: the backlog is within the objective": {
			rate: 380, change: func(*policy.Input, *policy.State) {},
			hold: policy.HoldWithinObjective,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(test.rate, test.ready)
			test.change(&in, &state)
			decision, _ := policy.Decide(in, state)
			if test.hold == "" {
				require.NotEqual(t, in.CurrentReplicas, decision.Replicas, "%+v", decision.Hold)
				return
			}
			require.Equal(t, in.CurrentReplicas, decision.Replicas, "%s", decision.Equation)
			require.NotNil(t, decision.Hold)
			require.Equal(t, test.hold, decision.Hold.Reason)
			require.NotEmpty(t, decision.Hold.Message)
			require.Contains(t, decision.Hold.Message, test.message)
		})
	}
}

// surplusOf is an input of replicas of which some have been a surplus for a time, and the state that remembers it.
func surplusOf(current, needed int32, since time.Duration) (policy.Input, policy.State) {
	in := asking(current, reading(100*float64(needed), 0), backlogStrategy(100))
	in.Spec.MaxReplicas, in.Reading.Consumers = 100, backlog.Known(float64(current))
	return in, policy.State{
		Start: policy.Start{Replicas: current}, ReadAt: ago(10 * time.Second),
		Recommendations: []policy.ReplicasAt{{At: ago(since), Replicas: current}},
	}
}

// A change costs time of all replicas and of one. A scale-down happens once the surplus has cost more.
func TestAScaleDownHappensOnceItIsWorthItsPrice(t *testing.T) {
	keyShared := func(in *policy.Input, _ *policy.State) { in.Reading.Type = backlog.KeyShared }
	restarting := func(in *policy.Input, state *policy.State) {
		in.Restarts, state.Start.Seconds, state.Start.Count = true, 60, 5
	}
	window := func(seconds int32) func(*policy.Input, *policy.State) {
		return func(in *policy.Input, _ *policy.State) {
			in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &seconds}}
		}
	}
	same := func(*policy.Input, *policy.State) {}
	tests := map[string]struct {
		current, needed int32
		change          func(*policy.Input, *policy.State)
		// In seconds: a surplus for this long is kept, and is removed after that.
		kept, removed int
	}{
		"one replica of four":                            {4, 3, same, 45, 100},
		"90 % of forty, after the default window":        {40, 4, same, 29, 30},
		"one replica of forty":                           {40, 39, same, 300, 520},
		"one replica of four, Key_Shared":                {4, 3, keyShared, 110, 230},
		"90 % of forty, Key_Shared":                      {40, 4, keyShared, 29, 60},
		"one replica of four that all restart":           {4, 3, restarting, 190, 400},
		"90 % of forty that all restart":                 {40, 4, restarting, 45, 100},
		"one replica of four, without a window":          {4, 3, window(0), 45, 100},
		"90 % of forty, without a window":                {40, 4, window(0), 5, 20},
		"one replica of four, in a window of 5 minutes":  {4, 3, window(300), 299, 300},
		"90 % of forty, in a window of 5 minutes":        {40, 4, window(300), 299, 300},
		"all but one of two, in a window of ten seconds": {2, 1, window(10), 35, 80},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := func(seconds int) policy.Decision {
				in, state := surplusOf(test.current, test.needed, time.Duration(seconds)*time.Second)
				test.change(&in, &state)
				decision, _ := policy.Decide(in, state)
				return decision
			}
			kept := after(test.kept)
			require.Equal(t, test.current, kept.Replicas)
			require.Equal(t, policy.HoldStabilizing, kept.Hold.Reason)
			require.Contains(t, kept.Hold.Message, fmt.Sprintf("%d replicas are enough, %d were needed %s ago", test.needed,
				test.current, time.Duration(test.kept)*time.Second))
			removed := after(test.removed)
			require.Equal(t, test.needed, removed.Replicas)
			require.Nil(t, removed.Hold)
		})
	}
}

func TestTheLargestNeedSinceCounts(t *testing.T) {
	in, state := surplusOf(10, 2, 10*time.Minute)
	state.Recommendations = append(state.Recommendations, policy.ReplicasAt{At: ago(20 * time.Second), Replicas: 6})
	decision, after := policy.Decide(in, state)
	require.Equal(t, int32(6), decision.Replicas, "four have been a surplus for ten minutes, and four for 20 s")
	require.Equal(t, policy.HoldStabilizing, decision.Hold.Reason)

	in.Now = in.Now.Add(20 * time.Second) // the autoscaler has not followed
	in.Reading.At = in.Now
	decision, _ = policy.Decide(in, after)
	require.Equal(t, int32(2), decision.Replicas, "a scale-down in progress becomes larger")
}
