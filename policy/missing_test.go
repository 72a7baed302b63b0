// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// runningPods are consumed with all pods running and ready.
func runningPods(replicas int32, consumers float64, each int32) policy.Input {
	in := consumed(replicas, consumers, perReplica(each))
	in.Pods = &policy.Pods{Running: &replicas}
	return in
}

func TestMissingConsumersAreThoseOfReplicasThatRun(t *testing.T) {
	for name, test := range map[string]struct {
		in     policy.Input
		change func(*policy.Input)
		want   int32
	}{
		"as many as they open":            {runningPods(4, 16, 4), nil, 0},
		"more than they open":             {runningPods(4, 17, 4), nil, 0},
		"each opens 1 instead of 4":       {runningPods(4, 4, 4), nil, 12},
		"the only replica opens 1":        {runningPods(1, 1, 4), nil, 3},
		"one replica does not consume":    {runningPods(4, 3, 1), nil, 1},
		"no replica consumes":             {runningPods(4, 0, 1), nil, 4},
		"no replica runs":                 {runningPods(0, 0, 4), nil, 0},
		"a pod starts":                    {runningPods(4, 3, 1), func(in *policy.Input) { in.Pods.Unready = 1 }, 0},
		"a rollout replaces pods":         {runningPods(4, 3, 1), func(in *policy.Input) { in.Pods.Updating = true }, 0},
		"two more pods terminate":         {runningPods(4, 2, 1), func(in *policy.Input) { in.CurrentReplicas = 2 }, 0},
		"two pods are not there yet":      {runningPods(4, 4, 1), func(in *policy.Input) { in.CurrentReplicas = 6 }, 0},
		"pods are unknown":                {runningPods(4, 4, 4), func(in *policy.Input) { in.Pods = nil }, 0},
		"running pods are unknown":        {runningPods(4, 4, 4), func(in *policy.Input) { in.Pods.Running = nil }, 0},
		"the target names its consumers":  {runningPods(4, 4, 4), func(in *policy.Input) { in.Spec.Subscription = nil }, 0},
		"the number is unknown":           {runningPods(4, 4, 4), unknownConsumers, 0},
		"a topic is unknown":              {runningPods(4, 4, 4), missingTopic, 0},
		"the reading is unknown entirely": {runningPods(4, 4, 4), func(in *policy.Input) { in.Unknown = backlog.ErrNoData }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if test.change != nil {
				test.change(&test.in)
			}
			require.Equal(t, test.want, test.in.MissingConsumers())
		})
	}
}

func unknownConsumers(in *policy.Input) {
	in.Reading.Consumers = backlog.Unknown(errors.New("no full answer"))
}

func missingTopic(in *policy.Input) { in.Reading = fixture.Partial(in.Reading, backlog.ErrForbidden) }

// Three of four consumers that a replica opens are missing: what all process would count as the work of a quarter.
func TestNothingIsLearnedWhileConsumersAreMissing(t *testing.T) {
	saturated := func(running int32, consumers float64) policy.Input {
		in := runningPods(running, consumers, 4)
		ours := in.Spec.Subscription
		in.Reading = stuck(consumers)
		in.Reading.ProcessRate = backlog.Known(500)
		in.Spec.Subscription = ours
		return in
	}
	_, state := policy.Decide(saturated(4, 16), policy.State{}) // of this subscription
	state.ReadAt, state.LearnedAt = ago(10*time.Second), ago(10*time.Second)
	state.Capacity, state.Arrivals, state.Floor = learned(100), arrivals(500), policy.Floor{}
	state.Start.Open, state.Start.From, state.Start.Changed = true, 2, ago(4*time.Minute)
	decision, after := policy.Decide(saturated(4, 4), state)
	require.Equal(t, state.Capacity, after.Capacity)
	require.Equal(t, state.Floor, after.Floor)
	require.False(t, after.Start.Open, "the others may never come")
	require.InDelta(t, 500, after.Arrivals.Rate, 100, "the load is learned")
	require.GreaterOrEqual(t, decision.Replicas, int32(4))

	_, after = policy.Decide(saturated(4, 16), state)
	require.Greater(t, after.Capacity.MessagesPerSecond, 100.0, "all are there: 500/s by four replicas")
}
