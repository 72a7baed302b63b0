// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
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
const drain = 27.5

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
	always := func(change func(*backlog.Reading)) func(int, *policy.Input) {
		return func(_ int, in *policy.Input) { change(&in.Reading) }
	}
	some, unknown := backlog.Known(0.1), backlog.Unknown(backlog.ErrNoRate)
	tests := map[string]struct {
		change func(second int, in *policy.Input)
		want   int
	}{
		"after five idle minutes":        {func(int, *policy.Input) {}, 300},
		"not with a minReplicas of 1":    {func(_ int, in *policy.Input) { in.Spec.MinReplicas = new(int32(1)) }, -1},
		"not while messages arrive":      {always(func(r *backlog.Reading) { r.PublishRate = some }), -1},
		"not while some are processed":   {always(func(r *backlog.Reading) { r.ProcessRate = some }), -1},
		"not while some are ready":       {always(func(r *backlog.Reading) { r.Total, r.Ready = some, some }), -1},
		"not by a quick count":           {always(func(r *backlog.Reading) { r.ExactAt = time.Time{} }), -1},
		"not while some are delayed":     {always(func(r *backlog.Reading) { r.Total, r.Delayed = some, some }), -1},
		"not by an unknown backlog":      {always(func(r *backlog.Reading) { r.Total = unknown }), -1},
		"not by unknown arrivals":        {always(func(r *backlog.Reading) { r.PublishRate = unknown }), -1},
		"not by an unknown process rate": {always(func(r *backlog.Reading) { r.ProcessRate = unknown }), -1},
		"not while Pulsar is silent":     {func(_ int, in *policy.Input) { in.Unknown = backlog.ErrUnreachable }, -1},
		"not by old answers":             {always(func(r *backlog.Reading) { r.At = r.At.Add(-31 * time.Second) }), -1},
		"not while answers fail":         {always(func(r *backlog.Reading) { r.Trouble = backlog.ErrUnreachable }), -1},
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
	waiting := func(messages float64, changes ...func(*policy.Input)) policy.Input {
		in := idle(0, 0)
		in.Reading = reading(messages, 0)
		in.Reading.Consumers = backlog.Known(0)
		for _, change := range changes {
			change(&in)
		}
		return in
	}
	shortly := func(in *policy.Input) { in.Spec.LatencyObjective.Duration = 30 * time.Second }
	lacking := func(why error) func(*policy.Input) {
		return func(in *policy.Input) { in.Reading = fixture.Partial(in.Reading, why) }
	}
	atLeast2 := func(in *policy.Input) { in.Spec.MinReplicas = new(int32(2)) }
	running3 := func(in *policy.Input) { in.CurrentReplicas = 3 }
	unknown := func(in *policy.Input) { in.Reading.Ready = backlog.Unknown(backlog.ErrPartial) }
	arriving := func(in *policy.Input) { in.Reading.PublishRate = backlog.Known(1) }
	once := func(in *policy.Input) { in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate) }
	strict := func(in *policy.Input) {
		in.Spec.ObjectivePercent, in.Reading.Delayed = new(int32(90)), backlog.Known(0)
		in.Reading.OldestAge, in.Reading.OldestAt = backlog.Known(1), in.Reading.At
	}
	notFound, forbidden := lacking(backlog.ErrTopicNotFound), lacking(backlog.ErrForbidden)
	gone := backlog.ErrSubscriptionNotFound
	wasGone := fmt.Errorf("%w: %w", backlog.ErrStale, gone)

	known := policy.State{Capacity: learned(100), Arrivals: arrivals(0)}
	busy, discounting, pausing, trying := known, known, known, known
	busy.Arrivals = arrivals(1000)
	discounting.Floor = policy.Floor{Messages: 500}
	probing := *learned(100)
	probing.Probe = 125
	trying.Capacity = &probing
	trying.Budget = policy.Budget{Since: noon(), Counts: []policy.Count{{All: 1000}}}
	pausing.Zero = policy.Zero{Since: noon(), Backoff: time.Minute}
	draining := int32(math.Ceil(36_000 / drain / 100))
	tests := map[string]struct {
		in    policy.Input
		state policy.State
		want  int32
		hold  string
	}{
		"not without a backlog": {waiting(0), known, 0, ""},
		"one for one message":   {waiting(1), known, 1, ""},
		"one for one message of a long call": {
			waiting(1), policy.State{Capacity: learned(0.0033), Arrivals: arrivals(0)}, 1, "",
		},
		"one for each message of long calls": {
			waiting(3), policy.State{Capacity: learned(0.0033), Arrivals: arrivals(0)}, 3, "",
		},
		"one, to learn":                    {waiting(1e6), policy.State{}, 1, policy.HoldLearning},
		"several with a short objective":   {waiting(1e6, shortly), policy.State{}, 4, policy.HoldLearning},
		"these before two answers":         {waiting(1e6, shortly, once), policy.State{}, 4, policy.HoldLearning},
		"of these, as many as have work":   {waiting(250, shortly), policy.State{}, 2, policy.HoldLearning},
		"of these, one for few messages":   {waiting(20, shortly), policy.State{}, 1, policy.HoldLearning},
		"all that drain it in time":        {waiting(36_000), known, draining, ""},
		"and others for the arrivals":      {waiting(36_000), busy, draining + 10, ""},
		"all before two answers":           {waiting(36_000, once), known, draining, ""},
		"all with a budget and an attempt": {waiting(36_000, strict), trying, draining, ""},
		"not by a contradicted rate":       {waiting(500), busy, 2, ""},
		"not for discounted messages":      {waiting(500), discounting, 0, policy.HoldWakeBackoff},
		"not for an unknown backlog":       {waiting(9, unknown), known, 0, policy.HoldUnknown},
		"all, by the known topics":         {waiting(36_000, notFound), known, draining, ""},
		"none, by the known topics":        {waiting(0, notFound), known, 0, policy.HoldUnknown},
		"one for a lost subscription":      {waiting(0, lacking(gone)), known, 1, ""},
		"none if it may exist again":       {waiting(0, lacking(wasGone)), known, 0, policy.HoldUnknown},
		"not in a back-off, by a part":     {waiting(9, forbidden), pausing, 0, policy.HoldWakeBackoff},
		"a part removes none":              {waiting(9, forbidden, atLeast2, running3), known, 3, policy.HoldUnknown},
		"not during a back-off":            {waiting(9), pausing, 0, policy.HoldWakeBackoff},
		"in a back-off, for new messages":  {waiting(9, arriving), pausing, 1, ""},
		"to minReplicas":                   {waiting(0, atLeast2), known, 2, ""},
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

func TestReplicasWakeByTheStrategies(t *testing.T) {
	formula := v1alpha1.Strategy{Type: v1alpha1.StrategyCapacity}
	slow := policy.State{Capacity: learned(1), Arrivals: arrivals(0)}
	const drained = "woken from zero: (0/s arriving + 380 backlog / 28s) / 1/s per replica = 13.82"
	tests := map[string]struct {
		state      policy.State
		strategies []v1alpha1.Strategy
		want       int32
		why        string
	}{
		"by the backlog": {
			policy.State{},
			[]v1alpha1.Strategy{backlogStrategy(100)},
			4, "woken from zero: 380 backlog / 100 per replica = 3.80",
		},
		"by the backlog whatever the capacity": {
			slow,
			[]v1alpha1.Strategy{backlogStrategy(100)},
			4, "woken from zero: 380 backlog / 100 per replica = 3.80",
		},
		"by the larger of two": {
			policy.State{},
			[]v1alpha1.Strategy{formula, backlogStrategy(50)},
			8, "woken from zero: 380 backlog / 50 per replica = 7.60",
		},
		"by the formula beside another":    {slow, []v1alpha1.Strategy{backlogStrategy(100), formula}, 14, drained},
		"by the formula without busy time": {slow, []v1alpha1.Strategy{utilizationStrategy(70)}, 14, drained},
		"by the arrivals, of which none are left": {
			slow, []v1alpha1.Strategy{rateStrategy("10")}, 1, "woken from zero: 380 backlog = 1",
		},
		"within maxReplicas": {
			policy.State{},
			[]v1alpha1.Strategy{backlogStrategy(1)},
			20, "woken from zero: 380 backlog / 1 per replica = 380.00",
		},
		"by one without a capacity": {
			policy.State{},
			nil, 1,
			"woken from zero: 380 backlog / 100, at most 1 while the capacity of a replica is unknown = 1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := idle(0, 0)
			in.Spec.Strategies, in.Spec.MaxReplicas = test.strategies, 20
			in.Reading.Ready, in.Reading.Total = backlog.Known(380), backlog.Known(380)
			decision, _ := policy.Decide(in, test.state)
			require.Equal(t, test.want, decision.Replicas)
			require.Equal(t, test.why, decision.Equation)
		})
	}
}

// The formula woke 20 for a threshold of one, and took 19 back before they started.
func TestAWakeIsNotTakenBackWhileItStarts(t *testing.T) {
	p := newPlant(0, 0, 0.1)
	p.in.Spec.Strategies, p.in.Spec.MinReplicas = []v1alpha1.Strategy{backlogStrategy(100)}, new(int32)
	p.state = policy.State{Capacity: learned(0.1), Arrivals: arrivals(0)}
	p.rate = func(second int) float64 {
		if second == 15 {
			return 380
		}
		return 0
	}
	p.run(60)
	require.Equal(t, []int32{0, 0, 4, 4, 4, 4}, p.replicas())
}

func TestDecisionsAboutZeroAreExplained(t *testing.T) {
	waiting := idle(0, 0)
	waiting.Reading.Ready, waiting.Reading.Total = backlog.Known(36_000), backlog.Known(36_000)
	known := policy.State{Capacity: learned(100), Arrivals: arrivals(1000)}
	due := policy.State{
		Zero:     policy.Zero{IdleSince: noon().Add(-6 * time.Minute), IdleAt: noon().Add(-10 * time.Second)},
		Capacity: learned(100),
		ReadAt:   noon(),
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
			"woken from zero: 36000 backlog / 100, at most 1 while the capacity of a replica is unknown = 1",
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			decision, _ := policy.Decide(test.in, test.state)
			require.Equal(t, test.want, decision.Equation)
		})
	}
}

// A wake that the autoscaler has not followed stays decided after its backlog is gone.
func TestOnlyALostSubscriptionIsNamedAsOne(t *testing.T) {
	state := policy.State{Capacity: learned(100), Arrivals: arrivals(0), Decided: decided(0, 3)}
	decision, _ := policy.Decide(idle(0, 10), state)
	require.Equal(t, int32(3), decision.Replicas)
	require.NotContains(t, decision.Equation, "lacks")

	in := idle(0, 10)
	in.Reading = fixture.Partial(in.Reading, backlog.ErrSubscriptionNotFound)
	decision, _ = policy.Decide(in, policy.State{Capacity: learned(100), Arrivals: arrivals(0)})
	require.Equal(t, "woken from zero: a topic lacks the subscription = 1", decision.Equation)

	decision, _ = policy.Decide(in, state)
	require.Equal(t, int32(3), decision.Replicas)
	require.NotContains(t, decision.Equation, "= 1", "the wake to 3 still has to be followed")
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
