// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// A requested scale-up stays until the autoscaler has acted on it. With a window shorter than that a Function went 8,
// 6, 8, 6... every two seconds: at 8 the scale-up was done and 6 were enough, and at 6 it looked as if it was still
// pending.
func TestACompletedScaleUpIsNotRequestedAgain(t *testing.T) {
	window := int32(0)
	state := policy.State{Arrivals: arrivals(400), Capacity: learned(100), Decided: decided(4, 8)}
	current := int32(8)
	var seen []int32
	for second := 2; second <= 100; second += 2 {
		in := input(current, reading(0, 400))
		in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
		in.Now = noon().Add(time.Duration(second) * time.Second)
		in.Reading.At = in.Now
		in.Reading.Consumers = backlog.Known(float64(current))
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if len(seen) == 0 || seen[len(seen)-1] != decision.Replicas {
			seen = append(seen, decision.Replicas)
		}
		current = decision.Replicas
	}
	require.Equal(t, []int32{8, 5}, seen, "400/s at 100/s and 0.93 are 5 replicas")
}

// A reconciler decides more often than Pulsar answers: at every poll, at each notification and when an object changes.
// The same answer is no second observation.
func TestAReadingIsLearnedFromOnce(t *testing.T) {
	saturated := reading(10_000, 1000)
	saturated.ProcessRate, saturated.Consumers, saturated.SteadyConsumers = backlog.Known(240), backlog.Known(10), true
	saturated.LeastUndispatched = backlog.Known(8000)
	before := policy.State{Arrivals: arrivals(1000), Capacity: learned(100), Decided: decided(4, 40)}

	in := input(10, saturated)
	_, once := policy.Decide(in, before)
	in.Now = in.Now.Add(time.Second)
	_, twice := policy.Decide(in, once)
	require.Equal(t, once.Capacity.Observations, twice.Capacity.Observations)
	require.InDelta(t, once.Capacity.MessagesPerSecond, twice.Capacity.MessagesPerSecond, 1e-9,
		"one reading is one surprise")

	before.Decided = policy.Decided{} // all requested replicas consume
	before.Plateau = policy.Plateau{
		Stage: policy.Verifying, Since: noon(), Reference: policy.Output{Replicas: 2, Processed: 240}, Each: 100,
	}
	in = input(10, saturated)
	state := before
	for second := range 5 {
		in.Now = noon().Add(time.Duration(second) * time.Second)
		_, state = policy.Decide(in, state)
	}
	require.LessOrEqual(t, state.Plateau.Seen.Polls, int32(1), "one reading is one bad poll")
	require.Zero(t, state.Plateau.Ceiling())
}

// The load rises at once, so the scale-up comes before any reading shows replicas with work throughout. The new
// replicas share an external limit: they must not be taken for slow ones, of which more are needed.
func TestAScaleUpBeforeSaturationOpensAnEpisode(t *testing.T) {
	const one, limit, most, seconds = 50.0, 120.0, 40, 10
	state, queue, current, had := policy.State{Capacity: learned(one)}, 0.0, int32(1), int32(1)
	state.Capacity.Coverage = 1
	largest, ineffective := int32(0), false
	for now := noon(); now.Before(noon().Add(10 * time.Minute)); now = now.Add(seconds * time.Second) {
		arriving := 20.0
		if now.Sub(noon()) >= time.Minute {
			arriving = 250
		}
		least, can := queue, min(limit, one*float64(current))
		done := min(queue+arriving*seconds, can*seconds) / seconds
		queue += (arriving - done) * seconds
		in := input(current, reading(queue, arriving))
		in.Now, in.Reading.At, in.Spec.MaxReplicas = now, now, most
		in.Spec.LatencyObjective.Duration = 30 * time.Second
		in.Reading.LeastReady, in.Reading.ProcessRate = backlog.Known(min(least, queue)), backlog.Known(done)
		in.Reading.Consumers, in.Reading.SteadyConsumers = backlog.Known(float64(current)), current == had
		in.Reading = timed(in.Reading, float64(current), min(1, done/can), done)
		had = current
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		hold := ""
		if decision.Hold != nil {
			hold = decision.Hold.Reason
		}
		t.Logf("%3.0fs %d -> %d: %s %s; %.0f wait, %.4g/s", now.Sub(noon()).Seconds(), current, decision.Replicas,
			decision.Equation, hold, queue,
			state.Capacity.MessagesPerSecond)
		ineffective = ineffective || hold == policy.HoldIneffective
		current = decision.Replicas
		largest = max(largest, current)
	}
	require.True(t, ineffective, "the hold is that more replicas process no more")
	require.Less(t, largest, int32(most))
}

// Replicas of a scale-up are still starting at the next one: those that do not consume yet were not restarted by it.
func TestReplicasThatAreStillStartingWereNotRestarted(t *testing.T) {
	state := policy.State{Arrivals: arrivals(20), Capacity: learned(50)}
	seen := []struct {
		replicas  int32
		consumers float64
	}{{1, 1}, {4, 1}, {4, 1}, {7, 1}, {7, 1}, {7, 4}, {7, 7}, {7, 7}}
	for i, one := range seen {
		in := input(one.replicas, reading(0, 20))
		in.Now = noon().Add(time.Duration(i) * 5 * time.Second)
		in.Reading.At, in.Reading.Consumers = in.Now, backlog.Known(one.consumers)
		_, state = policy.Decide(in, state)
	}
	require.False(t, state.Start.Open)
	require.Zero(t, state.Start.Restarts)

	for i, one := range []float64{0, 3, 8} { // these had all been there
		in := input(8, reading(0, 20))
		in.Now = noon().Add(time.Duration(len(seen)+i) * 5 * time.Second)
		in.Reading.At, in.Reading.Consumers = in.Now, backlog.Known(one)
		_, state = policy.Decide(in, state)
	}
	require.Equal(t, int32(1), state.Start.Restarts)
}

// Readings cover a window, so after a step a saturated pool looks half idle for a while. This shows nothing about
// replicas that do not consume yet, or about a backlog that is newer.
func TestWindowedMeasurementsDoNotMisjudgeAStep(t *testing.T) {
	halfBusy := func(second int, ready, least float64, current int32, consumers float64) policy.Input {
		in := input(current, reading(ready, 250))
		in.Now = noon().Add(time.Duration(second) * time.Second)
		in.Reading.At, in.Reading.ProcessRate, in.Reading.SteadyConsumers = in.Now, backlog.Known(30), true
		in.Reading.LeastReady, in.Reading.Consumers = backlog.Known(least), backlog.Known(consumers)
		in.Reading.Instances.Busy = backlog.Known(0.5)
		return in
	}
	state := policy.State{Arrivals: arrivals(20), Capacity: learned(50), Floor: policy.Floor{Idle: true}}
	state.Capacity.Coverage = 1
	decision, state := policy.Decide(halfBusy(10, 2000, 0, 1, 1), state)
	require.Greater(t, decision.Replicas, int32(4))
	require.Zero(t, state.Floor.Messages, "nothing waited when the replica was idle")
	require.Equal(t, policy.Verifying, state.Plateau.Stage, "the raise is watched")

	raised := decision.Replicas
	_, state = policy.Decide(halfBusy(20, 4000, 2000, raised, 1), state)
	require.Equal(t, policy.Verifying, state.Plateau.Stage, "no new replica consumes yet")
	_, state = policy.Decide(halfBusy(30, 4000, 2000, raised, float64(raised)), state)
	require.Empty(t, state.Plateau.Stage, "all consume and are not busy: there is another limit")
}

// Pulsar and the instances are read at different times, and instances with long calls are measured over several calls.
// 10 s of one with the busy time of the other gave a capacity that was 10 to 23 times too high.
func TestCapacityIsTheTimeOfACall(t *testing.T) {
	for _, busy := range []float64{0.95, 0.5} {
		state := policy.State{Arrivals: arrivals(0.1), Capacity: learned(0.0033)}
		state.Capacity.Coverage = 1
		for poll := 1; poll <= 90; poll++ {
			in := input(33, reading(33, 0.1))
			in.Now = noon().Add(time.Duration(10*poll) * time.Second)
			in.Reading.At, in.Reading.SteadyConsumers, in.Reading.Consumers = in.Now, true, backlog.Known(33)
			in.Reading.ProcessRate = backlog.Known(0)
			if poll%30 == 0 { // they started together
				in.Reading.ProcessRate = backlog.Known(3.3)
			}
			in.Reading = timed(in.Reading, 33, busy, 33*busy*0.0033)
			in.Reading.Instances.Window = 5 * time.Minute
			_, state = policy.Decide(in, state)
		}
		require.InEpsilon(t, 0.0033, state.Capacity.MessagesPerSecond, 0.05)
	}
}

// Calls of five minutes with an objective of one: 71 replicas ran for 33 messages.
func TestNoMoreReplicasRunThanThereAreMessages(t *testing.T) {
	state := policy.State{Arrivals: arrivals(0.1), Capacity: learned(0.0033)}
	state.Arrivals.Rise = 2
	in := input(10, reading(33, 0.1))
	in.Spec.MaxReplicas = 100
	decision, _ := policy.Decide(in, state)
	require.Equal(t, int32(38), decision.Replicas, decision.Equation) // 33, and 0.1/s for 50 s
	require.Contains(t, decision.Equation, ", and 38 have a message")
}
