// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// look is a poll, ten seconds after the previous one; a negative number of consumers is unknown.
type look struct {
	replicas  int32
	consumers float64
}

// watched is the Start learned from polls.
func watched(looks ...look) policy.Start { return watchedOn(false, looks...) }

// watchedOn is watched on a target of which each change restarts all replicas, or not.
func watchedOn(restarts bool, looks ...look) policy.Start {
	state := policy.State{}
	for i, one := range looks {
		in := input(one.replicas, reading(0, 0))
		in.Restarts = restarts
		in.Now = noon().Add(time.Duration(i) * 10 * time.Second)
		in.Reading.At, in.Reading.Consumers = in.Now, backlog.Known(one.consumers)
		if one.consumers < 0 {
			in.Reading.Consumers = backlog.Unknown(backlog.ErrNotRequested)
		}
		_, state = policy.Decide(in, state)
	}
	return state.Start
}

func TestStartsAreLearned(t *testing.T) {
	tests := map[string]struct {
		looks             []look
		count, restarting int32
		least, most       float64
	}{
		"nothing before a change": {looks: []look{{2, 2}, {2, 2}, {2, 1}, {2, 2}}},
		"the time until all consume": {looks: []look{
			{2, 2},
			{4, 2},
			{4, 2},
			{4, 3},
			{4, 3},
			{4, 3},
			{4, 3},
			{4, 4},
		}, count: 1, least: 40, most: 50},
		"a start that is faster than the prior": {looks: []look{{2, 2}, {4, 2}, {4, 4}}, count: 1, least: 10, most: 20},
		"nothing after a scale-down":            {looks: []look{{4, 4}, {2, 4}, {2, 2}}},
		"nothing while they still start":        {looks: []look{{2, 2}, {4, 2}, {4, 3}, {4, 3}}},
		"nothing if the consumers are unknown":  {looks: []look{{2, 2}, {4, -1}, {4, 4}, {4, 4}}},
		"the time since the last of several changes": {
			looks: []look{{2, 2}, {4, 2}, {4, 2}, {6, 2}, {6, 6}}, count: 1,
			least: 10, most: 20,
		},
		"a way up right after one down": {
			looks: []look{{6, 6}, {4, 6}, {5, 4}, {5, 4}, {5, 5}}, count: 1,
			least: 15, most: 25,
		},
		"a way up right after one down, beside another's consumer": {
			looks: []look{{6, 7}, {4, 7}, {5, 5}, {5, 5}, {5, 6}}, count: 1,
			least: 15, most: 25,
		},
		"that a way up restarts all": {
			looks: []look{{4, 4}, {6, 4}, {6, 0}, {6, 3}, {6, 6}}, count: 1,
			least: 15, most: 30, restarting: 1,
		},
		"that a way down restarts all": {looks: []look{{6, 6}, {4, 6}, {4, 0}, {4, 4}}, restarting: 1},
		"that a change after a restarting one restarts no": {
			looks: []look{{6, 6}, {4, 6}, {4, 0}, {4, 4}, {6, 4}, {6, 6}},
			count: 1, least: 10, most: 20,
		},
		"a wake from zero": {
			looks: []look{{1, 1}, {0, 1}, {0, 0}, {2, 0}, {2, 0}, {2, 1}, {2, 2}}, count: 1,
			least: 25, most: 30,
		},
		"the first wake": {looks: []look{{0, 0}, {2, 0}, {2, 0}, {2, 1}, {2, 2}}, count: 1, least: 25, most: 30},
		"that neither a way to zero nor one back shows restarts": {
			looks: []look{
				{6, 6}, {4, 6}, {4, 0}, {4, 4}, {0, 4}, {0, 0}, {4, 0}, {4, 4},
			}, count: 1, least: 10, most: 20, restarting: 1,
		},
		"no restart of replicas that did not consume yet": {
			looks: []look{{4, 0}, {6, 0}, {6, 0}, {6, 6}}, count: 1,
			least: 10, most: 30,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			start := watched(test.looks...)
			require.Equal(t, test.count, start.Count)
			require.Equal(t, test.restarting, start.Restarts)
			require.GreaterOrEqual(t, start.Seconds, test.least)
			require.LessOrEqual(t, start.Seconds, test.most)
		})
	}
}

func TestAStartThatNeverEndsIsNotLearned(t *testing.T) {
	looks := []look{{2, 2}}
	for range 60 {
		looks = append(looks, look{4, 3})
	}
	start := watched(looks...)
	require.Zero(t, start.Count)
	require.False(t, start.Open)
}

// While a function worker restarts the instances, it does not report how many there are.
func TestInstancesMayConsumeBeforeTheirWorkerReportsThem(t *testing.T) {
	late := watchedOn(true, look{1, 1}, look{1, 3}, look{3, 3})
	require.False(t, late.Open, "none of them are consumers of others")
	require.Zero(t, late.Count)
	require.True(t, watchedOn(true, look{1, 1}, look{1, 3}, look{3, 1}).Open, "the worker restarts them")
	require.True(t, watchedOn(true, look{3, 3}, look{1, 3}).Open, "after a scale-down as well")
	require.Equal(t, int32(1), watchedOn(true, look{1, 1}, look{3, 3}, look{3, 3}).Count, "a fast start is measured")
}

func TestStartsAreNeverNegativeAndWithinBounds(t *testing.T) {
	r := rand.New(rand.NewPCG(61, 62))
	for range 300 {
		looks := make([]look, 60)
		replicas := 1 + r.Int32N(10)
		for i := range looks {
			if r.IntN(5) == 0 {
				replicas = r.Int32N(12)
			}
			looks[i] = look{replicas, float64(r.Int32N(14)) - 1}
		}
		start := watched(looks...)
		require.GreaterOrEqual(t, start.Seconds, 0.0)
		require.LessOrEqual(t, start.Seconds, 300.0)
		require.GreaterOrEqual(t, start.Restarts, int32(0))
		require.LessOrEqual(t, start.Restarts, int32(3))
		require.GreaterOrEqual(t, start.Least, 0.0)
	}
}

func TestARestartByAnUpdateIsNoRestartByScaling(t *testing.T) {
	for name, recreated := range map[string]bool{"of a recreated target": true, "of one that was not": false} {
		t.Run(name, func(t *testing.T) {
			state, now := policy.State{}, noon()
			pass := func(replicas int32, consumers float64, recreated bool) {
				now = now.Add(10 * time.Second)
				in := input(replicas, reading(0, 0))
				in.Now, in.Reading.At, in.Reading.Consumers, in.Recreated = now, now, backlog.Known(consumers), recreated
				_, state = policy.Decide(in, state)
			}
			pass(3, 3, false)
			pass(3, 3, false)
			pass(1, 3, recreated) // the reading is from before
			pass(3, 0, false)
			pass(3, 1, false)
			pass(3, 3, false)
			require.Equal(t, !recreated, state.Start.Open || state.Start.Restarts > 0, "which holds replicas back")
		})
	}
}

// With the backlog that grows until they consume, a wake adds more at the next poll, which costs more than it saves.
func TestTheBacklogWhileReplicasWakeAddsFewer(t *testing.T) {
	in := input(2, reading(1429, 101))
	in.Reading.Consumers = backlog.Known(0)
	state := policy.State{
		Capacity: learned(54), Arrivals: arrivals(101), ReadAt: ago(10 * time.Second),
		Start: policy.Start{Replicas: 2, Open: true, Changed: ago(10 * time.Second)},
	}
	woken, _ := policy.Decide(in, state)
	state.Start.From = 1
	added, _ := policy.Decide(in, state)
	require.Equal(t, []int32{3, 4}, []int32{woken.Replicas, added.Replicas})
}

func TestALateAutoscalerLeavesMoreBacklogToPlanFor(t *testing.T) {
	replicas := func(lag time.Duration) int32 {
		in := consuming(5, reading(6000, 800)) // 300/s more than 5 replicas process
		in.Spec.MaxReplicas, in.Lag = 1000, lag
		decision, _ := policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(800)})
		return decision.Replicas
	}
	require.Equal(t, replicas(0), replicas(15*time.Second), "a sync is assumed")
	require.Greater(t, replicas(time.Minute), replicas(0))
	require.Greater(t, replicas(5*time.Minute), replicas(time.Minute))
	require.Equal(t, replicas(5*time.Minute), replicas(time.Hour), "a longer lag is an outage")
}
