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

// at moves an input, with its reading, to a number of seconds after noon.
func at(in policy.Input, second int) policy.Input {
	in.Now = noon().Add(time.Duration(second) * time.Second)
	in.Reading.At = in.Now
	return in
}

func TestAnOutageKeepsTheWindowAlive(t *testing.T) {
	in, state := wanting(90, 0)
	for second := 0; second <= 80; second += 10 {
		unknown := at(in, second)
		unknown.Unknown = backlog.ErrUnreachable
		_, state = policy.Decide(unknown, state)
	}
	decision, state := policy.Decide(at(in, 105), state)
	require.Equal(t, int32(4), decision.Replicas, "25 s after the last moment of which nothing is known")
	require.Equal(t, policy.HoldStabilizing, decision.Hold.Reason)
	decision, _ = policy.Decide(at(in, 160), state)
	require.Less(t, decision.Replicas, int32(4))
}

func TestUnknownReadingsOnlyRecreateAMissingSubscription(t *testing.T) {
	gone := fmt.Errorf("persistent://public/default/in: %w", backlog.ErrSubscriptionNotFound)
	paused := &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "a rollout is paused"}
	tests := map[string]struct {
		current int32
		unknown error
		frozen  *policy.Hold
		want    int32
		hold    string
	}{
		"at zero, one makes the subscription again": {0, gone, nil, 1, policy.HoldUnknown},
		"at zero, not for an answer that is old": {
			0, fmt.Errorf("%w: %w", backlog.ErrStale, gone), nil,
			0, policy.HoldUnknown,
		},
		"at zero, not while Pulsar does not answer":        {0, backlog.ErrUnreachable, nil, 0, policy.HoldUnknown},
		"at zero, not while they have to stay as they are": {0, gone, paused, 0, policy.HoldRolloutPaused},
		"running ones stay without their subscription":     {5, gone, nil, 5, policy.HoldUnknown},
		"running ones stay, with the reason":               {5, gone, paused, 5, policy.HoldRolloutPaused},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := idle(test.current, 0)
			in.Unknown, in.Frozen = test.unknown, test.frozen
			decision, after := policy.Decide(in, policy.State{Zero: policy.Zero{IdleSince: ago(4 * time.Minute)}})
			require.Equal(t, test.want, decision.Replicas)
			require.Equal(t, test.hold, decision.Hold.Reason)
			require.Zero(t, after.Zero.IdleSince, "the time between is unknown")
		})
	}
}

func TestAScaleUpIsRequestedUntilTheAutoscalerHadTime(t *testing.T) {
	raised := func(second int, rate float64) (policy.Decision, policy.State) {
		in, state := wanting(rate, 0)
		state.Decided = decided(4, 8)
		return policy.Decide(at(in, second), state)
	}
	decision, after := raised(44, 90)
	require.Equal(t, int32(8), decision.Replicas, "it looked so a moment ago")
	require.Equal(t, noon(), after.Decided.At, "requested since then")
	decision, _ = raised(45, 90)
	require.Less(t, decision.Replicas, int32(4), "it was not carried out, and it is not needed")
	decision, after = raised(20, 1500)
	require.Equal(t, policy.ReplicasAt{At: noon().Add(20 * time.Second), Replicas: decision.Replicas},
		after.Decided.ReplicasAt,
		"a higher one is new")
	require.Greater(t, decision.Replicas, int32(8))

	in, state := wanting(90, 0) // the autoscaler did a part: no manual scale
	in.CurrentReplicas, state.Decided = 6, decided(4, 8)
	_, after = policy.Decide(at(in, 20), state)
	require.Less(t, after.Recommendations[0].Replicas, int32(4))
}

func TestReplicasStayWhileOthersStart(t *testing.T) {
	in, state := wanting(90, 0)
	in.Reading.Consumers = backlog.Known(2)
	state.Start.Open, state.Start.Changed, state.Start.From, state.Start.Least = true, ago(time.Minute), 2, 2
	decision, after := policy.Decide(in, state)
	require.True(t, after.Start.Open)
	require.Equal(t, int32(4), decision.Replicas)
	require.Contains(t, decision.Hold.Message, "replicas have been starting for 1m0s")
}

// A remaining backlog of an idle Function does not keep its last replica, unless a replica holds it.
func TestARemainingBacklogKeepsNoLastReplica(t *testing.T) {
	tests := map[string]struct {
		floor   float64
		unacked backlog.Measurement
		pause   bool
		want    int
	}{
		"messages that no replica processes":              {5, backlog.Known(0), false, 300},
		"the same if Pulsar does not count held messages": {5, backlog.Unknown(backlog.ErrNoData), false, 300},
		"messages that a replica holds":                   {5, backlog.Known(1), false, -1},
		"more than replicas leave unprocessed":            {4, backlog.Known(0), false, -1},
		"no decision for a while":                         {5, backlog.Known(0), true, 540},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
			went := -1
			for second := 0; second <= 600; second += 10 {
				if test.pause && second > 200 && second < 240 {
					continue
				}
				in := idle(1, second)
				in.Reading.Ready, in.Reading.Total, in.Reading.Unacked = backlog.Known(5), backlog.Known(5), test.unacked
				state.Floor.Messages = test.floor
				var decision policy.Decision
				if decision, state = policy.Decide(in, state); decision.Replicas == 0 {
					went = second
					break
				}
			}
			require.Equal(t, test.want, went)
		})
	}
}

func TestAPauseAfterAWakeInVainIsKept(t *testing.T) {
	in := idle(0, 0)
	in.Reading.Ready, in.Reading.Total = backlog.Known(5), backlog.Known(5)
	state := policy.State{
		Capacity: learned(100), Arrivals: arrivals(0),
		Zero: policy.Zero{IdleSince: ago(10 * time.Minute)},
	}
	decision, state := policy.Decide(in, state)
	require.Equal(t, policy.HoldWakeBackoff, decision.Hold.Reason)
	decision, state = policy.Decide(at(in, 29), state)
	require.Zero(t, decision.Replicas)
	decision, _ = policy.Decide(at(in, 30), state)
	require.Equal(t, int32(1), decision.Replicas)
}

func TestDiscountedBacklogIsRetriedAfterTenMinutes(t *testing.T) {
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(0), Floor: policy.Floor{Messages: 500}}
	woke := -1
	for second := 0; second <= 900 && woke < 0; second += 10 {
		in := idle(0, second)
		in.Reading.Ready, in.Reading.Total = backlog.Known(500), backlog.Known(500)
		var decision policy.Decision
		if decision, state = policy.Decide(in, state); decision.Replicas > 0 {
			woke = second
		}
	}
	require.Equal(t, 600, woke)
}

func TestTheReferenceOfAVerification(t *testing.T) {
	raise := func(rate float64, change func(in *policy.Input, state *policy.State)) policy.Plateau {
		in := input(10, reading(0, rate))
		in.Reading.Consumers, in.Reading.ProcessRate = backlog.Known(10), backlog.Known(700)
		state := policy.State{Capacity: learned(100), Arrivals: arrivals(rate), Start: policy.Start{Replicas: 10}}
		change(&in, &state)
		decision, after := policy.Decide(in, state)
		require.Greater(t, decision.Replicas, int32(10))
		return after.Plateau
	}
	same := func(*policy.Input, *policy.State) {}
	begun := raise(1500, same)
	require.Equal(t, policy.Verifying, begun.Stage)
	require.InDelta(t, 1000, begun.Reference.Processed, 1e-9,
		"what ten that were not full were believed to do, not the 700 that they had to")
	require.Equal(t, ago(time.Minute), raise(1500, func(_ *policy.Input, state *policy.State) {
		state.Plateau = verifyingFrom(4, 10, ago(time.Minute))
	}).Since, "a second raise begins no second verification")
	require.Zero(t, raise(1500, func(in *policy.Input, state *policy.State) {
		in.Spec.Mode, state.Plateau = v1alpha1.ModeRecommend, verifyingFrom(4, 10, ago(time.Minute))
	}), "no autoscaler follows a recommendation")
}

// verifyingFrom is the verification of a scale-up of replicas that processed 100/s each.
func verifyingFrom(from, to int32, since time.Time) policy.Plateau {
	return policy.Plateau{
		Stage: policy.Verifying, Since: since, Each: 100, Replicas: to,
		Reference: policy.Output{Replicas: float64(from), Processed: 100 * float64(from)},
	}
}

func TestAVerificationEndsWhenItsReplicasNeverCome(t *testing.T) {
	in, state := wanting(360, 0)
	state.Start = policy.Start{Replicas: 4}
	state.Plateau = verifyingFrom(2, 4, noon())
	_, after := policy.Decide(at(in, 200), state) // a reaction takes 50 s
	require.Equal(t, policy.Verifying, after.Plateau.Stage)
	_, after = policy.Decide(at(in, 600), state)
	require.Empty(t, after.Plateau.Stage)
}

func TestTheWaitOfADecision(t *testing.T) {
	capacity := learned(100)
	tests := map[string]struct {
		ready, consumers, processed backlog.Measurement
		capacity                    *policy.LearnedCapacity
		want                        float64
		unknown                     error
	}{
		"an empty backlog":                       {backlog.Known(0.5), backlog.Known(4), backlog.Known(0), capacity, 0, nil},
		"by the capacity of the replicas":        {backlog.Known(800), backlog.Known(4), backlog.Known(50), capacity, 2, nil},
		"by the process rate without a capacity": {backlog.Known(800), backlog.Known(4), backlog.Known(50), nil, 16, nil},
		"by the process rate without a consumer": {
			backlog.Known(800), backlog.Known(0), backlog.Known(50), capacity, 16,
			nil,
		},
		"by the process rate if consumers are unknown": {
			backlog.Known(800), backlog.Unknown(backlog.ErrPartial),
			backlog.Known(50), capacity, 16, nil,
		},
		"unknown without a process rate": {
			backlog.Known(800), backlog.Known(4), backlog.Known(0), nil, 0,
			backlog.ErrNoRate,
		},
		"unknown if the process rate is unknown": {
			backlog.Known(800), backlog.Known(4),
			backlog.Unknown(backlog.ErrStale), nil, 0, backlog.ErrStale,
		},
		"unknown if the backlog is unknown": {
			backlog.Unknown(backlog.ErrPartial), backlog.Known(4),
			backlog.Known(50), capacity, 0, backlog.ErrPartial,
		},
		"others on the subscription help": {backlog.Known(800), backlog.Known(8), backlog.Known(50), capacity, 1, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(4, reading(0, 0))
			in.Reading.Ready, in.Reading.Consumers, in.Reading.ProcessRate = test.ready, test.consumers, test.processed
			decision, _ := policy.Decide(in, policy.State{Capacity: test.capacity})
			seconds, err := decision.Wait.Value()
			require.ErrorIs(t, err, test.unknown)
			require.InDelta(t, test.want, seconds, 1e-9)
		})
	}
}

func TestNothingIsLearnedWhileAFunctionThrows(t *testing.T) {
	in, state := wanting(300, 0)
	in.Reading, in.Spec.MaxReplicas = stuck(4), 4
	in.Reading.PublishRate, in.Reading.ProcessRate = backlog.Known(300), backlog.Known(300) // 75/s each
	state.LearnedAt = ago(10 * time.Second)
	learnedAt := func(second int, failed float64) float64 {
		now := at(in, second)
		now.Reading.Instances.UserExceptionRate, now.Reading.Instances.ProcessRate = backlog.Known(
			failed), backlog.Known(300-failed)
		_, state = policy.Decide(now, state)
		return state.Capacity.MessagesPerSecond
	}
	require.InDelta(t, 100, learnedAt(0, 160), 1e-9)
	require.InDelta(t, 100, learnedAt(60, 0), 1e-9, "failed messages are redelivered for two minutes")
	require.InDelta(t, 100, learnedAt(119, 0), 1e-9)
	require.Less(t, learnedAt(140, 0), 99.5)
}

func TestUtilizationIsOfOurReplicasAndOfAllTheirTime(t *testing.T) {
	others := used(10, 0.9)
	in := asking(4, others, utilizationStrategy(70))
	decision, _ := policy.Decide(in, policy.State{Capacity: covering(1)})
	require.Equal(t, int32(6), decision.Wanted, "4 x 90 % / 70 %: six consumers are not ours")
	decision, _ = policy.Decide(asking(4, used(4, 0.9), utilizationStrategy(70)), policy.State{Capacity: covering(0.5)})
	require.Equal(t, int32(6), decision.Wanted, "no replica is busy for more than the whole time")
}
