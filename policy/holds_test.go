// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
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
	just := arrivals(rate)
	just.At = noon()
	return in, policy.State{
		Capacity: learned(100), Arrivals: just, Start: policy.Start{Replicas: 4, Seconds: 20, Count: 3},
		Recommendations: []policy.ReplicasAt{},
	}
}

func ago(t time.Duration) time.Time { return noon().Add(-t) }

// Each decision has a hold, or none, and the reasons that passed before it, in this order. A reason with several checks
// has passed with the last of them.
func TestHolds(t *testing.T) {
	const more, fewer = 800.0, 90.0
	formula := []string{policy.HoldWithinObjective, policy.HoldUnverified, policy.HoldIneffective}
	up := slices.Concat(formula, []string{policy.HoldDispatchLimited, policy.HoldNotStarting})
	down := []string{policy.HoldUnknown, policy.HoldStabilizing}
	type change = func(in *policy.Input, state *policy.State)
	changed := func(change func(in *policy.Input)) change {
		return func(in *policy.Input, _ *policy.State) { change(in) }
	}
	pods := func(p policy.Pods) change { return changed(func(in *policy.Input) { in.Pods = &p }) }
	behavior := func(b v1alpha1.Behavior) change { return changed(func(in *policy.Input) { in.Spec.Behavior = &b }) }
	scaleUp := func(rules v1alpha1.ScaleUpRules) change { return behavior(v1alpha1.Behavior{ScaleUp: &rules}) }
	adding := func(value int32) v1alpha1.ScaleUpRules {
		return v1alpha1.ScaleUpRules{Policies: []v1alpha1.ScalingPolicy{
			{Type: v1alpha1.PodsScalingPolicy, Value: value, PeriodSeconds: 60},
		}}
	}
	needed := func(before time.Duration) change {
		return func(_ *policy.Input, state *policy.State) {
			state.Recommendations = []policy.ReplicasAt{{At: ago(before), Replicas: 4}}
		}
	}
	blocked := changed(func(in *policy.Input) { in.Reading.Blocked = true })
	crashes, crashed := pods(policy.Pods{Ready: 3, Unready: 1, CrashLooping: 1}), "1 of 4 replicas are in a crash loop"
	unready := func(since time.Duration) change {
		return pods(policy.Pods{Ready: 3, Unready: 1, UnreadySince: ago(since)})
	}
	for name, test := range map[string]struct {
		rate, ready float64
		change      change
		to          int // 1 for more replicas, -1 for fewer, 0 for the same
		hold        string
		message     string // a part of it
		passed      []string
	}{
		"up: all pass": {more, 0, nil, 1, "", "", up},
		"up: all pass, and maxReplicas limits": {
			more, 0, changed(func(in *policy.Input) { in.Spec.MaxReplicas = 4 }), 0, "", "", up,
		},
		"up: another strategy has no guard of the formula": {more, 0, changed(func(in *policy.Input) {
			in.Spec.Strategies = []v1alpha1.Strategy{rateStrategy("100")}
		}), 1, "", "", up[3:]},
		"no change is wanted":      {330, 0, nil, 0, "", "", nil},
		"up: the objective is met": {380, 0, nil, 0, policy.HoldWithinObjective, "messages wait", nil},
		"up: the last step is not verified": {more, 0, func(_ *policy.Input, state *policy.State) {
			state.Plateau = policy.Plateau{
				Stage: policy.Verifying, Since: noon(), Reference: pool(2, 200), Each: 100, Replicas: 4, Doubtful: true,
			}
		}, 0, policy.HoldUnverified, "unknown yet", formula[:1]},
		"up: dispatch is blocked": {
			more, 0, blocked, 0, policy.HoldDispatchLimited, "acknowledge messages in the function", formula,
		},
		"up: dispatch is blocked and throttled": {more, 0, changed(func(in *policy.Input) {
			in.Reading.Blocked, in.Reading.Throttled = true, true
		}), 0, policy.HoldDispatchLimited, "acknowledge messages in the function", formula},
		"up: dispatch is throttled": {more, 0, changed(func(in *policy.Input) {
			in.Reading.Throttled, in.Reading.ProcessRate = true, backlog.Known(200)
		}), 0, policy.HoldDispatchLimited, "a dispatch rate limit", formula},
		"up: dispatch is throttled, and who consumes is unknown": {more, 0, changed(func(in *policy.Input) {
			in.Reading.Throttled, in.Reading.ProcessRate = true, backlog.Known(200)
			in.Reading.Consumers = backlog.Unknown(backlog.ErrNotRequested)
		}), 0, policy.HoldDispatchLimited, "a dispatch rate limit", formula},
		"up for a backlog: one of four crashes":         {340, 30_000, crashes, 0, policy.HoldNotStarting, crashed, up[:4]},
		"up for a backlog of few arrivals: one crashes": {fewer, 30_000, crashes, 0, policy.HoldNotStarting, crashed, up[:4]},
		"up for arrivals and a backlog: one crashes":    {more, 300_000, crashes, 1, policy.HoldNotStarting, crashed, up[:4]},
		"up for arrivals: one of four crashes":          {more, 0, crashes, 1, policy.HoldNotStarting, crashed, up[:4]},
		"up for a backlog: the first crashes, and more are created after it": {
			340, 30_000, pods(policy.Pods{Unready: 1, CrashLooping: 1}), 0, policy.HoldNotStarting,
			"1 of 1 replicas are in a crash loop", up[:4],
		},
		"up for a backlog: one has not started for long": {
			340, 30_000, unready(6 * time.Minute), 0, policy.HoldNotStarting, "have not started for 6m0s", up[:4],
		},
		"up: one has not started for a short time":               {more, 0, unready(4 * time.Minute), 1, "", "", up},
		"up for a backlog: one has not started for a short time": {360, 30_000, unready(4 * time.Minute), 1, "", "", up},
		"up: nothing is wrong with the pods":                     {more, 0, pods(policy.Pods{}), 1, "", "", up},
		"up for a backlog: nothing is wrong with the pods":       {360, 30_000, pods(policy.Pods{}), 1, "", "", up},
		"up for a backlog: no pod is unready any longer": {
			360, 30_000, pods(policy.Pods{UnreadySince: ago(time.Hour)}), 1, "", "", up,
		},
		"up: pods are replaced": {more, 0, pods(policy.Pods{Updating: true}), 1, "", "", up},
		"up: a limit of behavior allows it": {
			more, 0, scaleUp(adding(100)), 1, "", "", append(slices.Clone(up), policy.HoldScaleUpLimit),
		},
		"up: a limit of behavior reduces it": {
			more, 0, scaleUp(adding(1)), 1, policy.HoldScaleUpLimit, "up to 5 replicas", up,
		},
		"up: a window of behavior holds": {more, 0, scaleUp(v1alpha1.ScaleUpRules{
			StabilizationWindowSeconds: new(int32(60)),
		}), 0, policy.HoldScaleUpStabilized, "4 replicas were enough", up},
		"up: behavior forbids it": {more, 0, scaleUp(v1alpha1.ScaleUpRules{
			SelectPolicy: v1alpha1.SelectDisabled,
		}), 0, policy.HoldScaleUpLimit, "is Disabled", up},
		"up: frozen replicas try none": {more, 0, changed(func(in *policy.Input) {
			in.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "a rollout is paused"}
		}), 0, policy.HoldRolloutPaused, "a rollout is paused", nil},
		"up: an unknown backlog tries none": {more, 0, changed(func(in *policy.Input) {
			in.Unknown = backlog.ErrUnreachable
		}), 0, policy.HoldUnknown, backlog.ErrUnreachable.Error(), nil},
		"down: all pass": {fewer, 0, nil, -1, "", "", down},
		"down: all pass, and minReplicas limits": {
			fewer, 0, changed(func(in *policy.Input) { in.Spec.MinReplicas = new(int32(4)) }), 0, "", "", down,
		},
		"down: dispatch is blocked": {fewer, 0, blocked, -1, "", "", down},
		"down: a replica crashes":   {fewer, 0, crashes, -1, "", "", down},
		"down: the reading is old": {fewer, 0, changed(func(in *policy.Input) {
			in.Reading.At = ago(31 * time.Second)
		}), 0, policy.HoldStabilizing, "the last answer from Pulsar is 31s old", nil},
		"down: the reading is old, with trouble": {fewer, 0, changed(func(in *policy.Input) {
			in.Reading.At, in.Reading.Trouble = ago(31*time.Second), errors.New("connection refused")
		}), 0, policy.HoldStabilizing, "the last valid answer from Pulsar is 31s old: connection refused", nil},
		"down: a part is unknown": {fewer, 0, changed(func(in *policy.Input) {
			in.Reading.Coverage = backlog.Coverage{Topics: 2, Known: 1}
		}), 0, policy.HoldUnknown, "1 of 2 topics are known", nil},
		"down: the arrivals are unknown": {fewer, 0, changed(func(in *policy.Input) {
			in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
		}), 0, policy.HoldUnknown, "the publish rate is unknown", nil},
		"down: pods are replaced": {
			fewer, 0, pods(policy.Pods{Updating: true}), 0, policy.HoldStabilizing, "a rollout is replacing pods", down[:1],
		},
		"down: more were needed within the window": {
			fewer, 0, needed(29 * time.Second), 0, policy.HoldStabilizing, "4 were needed 29s ago", down[:1],
		},
		"down: more were needed before the window": {fewer, 0, needed(60 * time.Second), -1, "", "", down},
		"down: behavior forbids it": {fewer, 0, behavior(v1alpha1.Behavior{
			ScaleDown: &v1alpha1.ScaleDownRules{SelectPolicy: v1alpha1.SelectDisabled},
		}), 0, policy.HoldScaleDownLimit, "is Disabled", down},
	} {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(test.rate, test.ready)
			if test.change != nil {
				test.change(&in, &state)
			}
			decision := requirePassed(t, in, state, test.hold, test.passed...)
			require.Equal(t, test.to, cmp.Compare(decision.Replicas, in.CurrentReplicas), "%+v", decision)
			if test.hold != "" {
				require.NotEmpty(t, decision.Hold.Message)
				require.Contains(t, decision.Hold.Message, test.message)
			}
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
			require.Empty(t, kept.CappedBy+removed.CappedBy)
		})
	}
}

func TestTheLargestNeedSinceCounts(t *testing.T) {
	in, state := surplusOf(10, 2, 10*time.Minute)
	state.Recommendations = append(state.Recommendations, policy.ReplicasAt{At: ago(20 * time.Second), Replicas: 6})
	decision, after := policy.Decide(in, state)
	require.Equal(t, int32(6), decision.Replicas, "four have been a surplus for ten minutes, and four for 20 s")
	require.Equal(t, policy.HoldStabilizing, decision.Hold.Reason)
	require.Empty(t, decision.CappedBy)

	in.Now = in.Now.Add(20 * time.Second) // the autoscaler has not followed
	in.Reading.At = in.Now
	decision, _ = policy.Decide(in, after)
	require.Equal(t, int32(2), decision.Replicas, "a scale-down in progress becomes larger")
}
