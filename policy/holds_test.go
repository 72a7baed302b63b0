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
		part        string
	}{
		"up: dispatch is blocked": {
			rate:   more,
			change: func(in *policy.Input, _ *policy.State) { in.Reading.Blocked = true }, hold: policy.HoldBlocked,
		},
		"up: dispatch is throttled": {
			rate:   more,
			change: func(in *policy.Input, _ *policy.State) { in.Reading.Throttled = true }, hold: policy.HoldThrottled,
		},
		"up for a backlog: one replica of four is in a crash loop": {
			rate: 360, ready: 30_000, change: func(in *policy.Input,
				_ *policy.State,
			) {
				in.Pods = &policy.Pods{CrashLooping: 1}
			}, hold: policy.HoldCrashLooping, part: "pods",
		},
		"up for a backlog: one of four has not started for long": {
			rate: 360, ready: 30_000, change: func(in *policy.Input, _ *policy.State) {
				in.Pods = &policy.Pods{Unready: 1, UnreadySince: ago(6 * time.Minute)}
			},
			hold: policy.HoldPodsPending, part: "pods",
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
		"up: keys have just moved": {
			rate: more, change: func(in *policy.Input, state *policy.State) {
				in.Reading.Type, state.Start.Changed = backlog.KeyShared, ago(119*time.Second)
			},
			hold: policy.HoldRebalancing, part: "key-shared",
		},
		"up, not held: keys moved two minutes ago": {
			rate: more, change: func(in *policy.Input, state *policy.State) {
				in.Reading.Type, state.Start.Changed = backlog.KeyShared, ago(2*time.Minute)
			},
		},
		"up, not held: keys have just moved and messages wait too long": {
			rate: more, ready: 30_000,
			change: func(in *policy.Input, state *policy.State) {
				in.Reading.Type, state.Start.Changed = backlog.KeyShared, ago(10*time.Second)
			},
		},
		"up: the last change restarted all": {
			rate: more, change: func(_ *policy.Input, state *policy.State) {
				state.Start.Restarts, state.Start.Changed = 1, ago(79*time.Second)
			},
			hold: policy.HoldRestarting, part: "restarts",
		},
		"up, not held: the last change restarted all four starts ago": {
			rate: more, change: func(_ *policy.Input, state *policy.State) {
				state.Start.Restarts, state.Start.Changed = 1, ago(80*time.Second)
			},
		},
		"up, not held: the last change restarted all, messages wait too long": {
			rate: more, ready: 30_000, change: func(_ *policy.Input, state *policy.State) {
				state.Start.Restarts, state.Start.Changed = 1, ago(10*time.Second)
			},
		},
		"down: pods are replaced": {
			rate: fewer, change: func(in *policy.Input, _ *policy.State) { in.Pods = updating },
			hold: policy.HoldUpdating, part: "pods",
		},
		"down: the reading is old": {
			rate: fewer,
			change: func(in *policy.Input,
				_ *policy.State,
			) {
				in.Reading.At = ago(31 * time.Second)
			}, hold: policy.HoldOldReading,
		},
		"down: what arrives is not known": {
			rate: fewer, change: func(in *policy.Input,
				_ *policy.State,
			) {
				in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
			}, hold: policy.HoldUnknown,
		},
		"down: keys have just moved, whatever waits": {
			rate: fewer, change: func(in *policy.Input, state *policy.State) {
				in.Reading.Type, state.Start.Changed = backlog.KeyShared, ago(time.Minute)
			},
			hold: policy.HoldRebalancing, part: "key-shared",
		},
		"down: the last change restarted all": {
			rate: fewer, change: func(_ *policy.Input, state *policy.State) {
				state.Start.Restarts, state.Start.Changed = 1, ago(time.Minute)
			},
			hold: policy.HoldRestarting, part: "restarts",
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
				state.Recommendations = []policy.ReplicasAt{{At: ago(44 * time.Second), Replicas: 4}}
			},
			hold: policy.HoldStabilizing,
		},
		"down, not held: more was needed before the window": {
			rate: fewer,
			change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(45 * time.Second), Replicas: 4}}
			},
		},
		"down: more was needed within the period of the load": {
			rate: fewer,
			change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(109 * time.Second), Replicas: 4}}
				state.Recurrence = policy.Recurrence{At: ago(39 * time.Minute), After: 100 * time.Second}
			},
			hold: policy.HoldStabilizing, part: "recurrence",
		},
		"down, not held: more was needed before the period of the load": {
			rate: fewer,
			change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(110 * time.Second), Replicas: 4}}
				state.Recurrence = policy.Recurrence{At: ago(39 * time.Minute), After: 100 * time.Second}
			},
		},
		"down, not held: the period of the load is long ago": {
			rate: fewer,
			change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(50 * time.Second), Replicas: 4}}
				state.Recurrence = policy.Recurrence{At: ago(40 * time.Minute), After: 100 * time.Second}
			},
		},
		"down: most of what is to be saved is to be saved soon": {
			rate: fewer, change: func(_ *policy.Input, state *policy.State) {
				state.Recommendations = []policy.ReplicasAt{{At: ago(30 * time.Second), Replicas: 3}}
			},
			hold: policy.HoldStabilizing, part: "patient-down",
		},
		"down: it saves a tenth": {
			rate: 850, change: func(in *policy.Input, state *policy.State) {
				in.CurrentReplicas, state.Start.Replicas = 11,
					11
			}, hold: policy.HoldSmallChange, part: "least-down",
		},
		"up: the backlog is within the objective": {
			rate: 380, change: func(*policy.Input, *policy.State) {},
			hold: policy.HoldWithinObjective, part: "lazy-up",
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
			if test.part != "" {
				part, err := policy.ParsePart(test.part)
				require.NoError(t, err)
				in.Without = part
				without, _ := policy.Decide(in, state)
				require.NotEqual(t, in.CurrentReplicas, without.Replicas, "%+v", without.Hold)
			}
		})
	}
}
