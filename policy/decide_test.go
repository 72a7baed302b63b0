// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// arrivals have been steady for long.
func arrivals(perSecond float64) *policy.Arrivals {
	return &policy.Arrivals{Fast: perSecond, Slow: perSecond, Rise: 0.05}
}

func learned(perSecond float64) *policy.LearnedCapacity {
	return &policy.LearnedCapacity{MessagesPerSecond: perSecond, Variance: 1e-4, Observations: 5, LearnedAt: noon()}
}

// spec is from 1 to 50 replicas with an objective of 60 s.
func spec() v1alpha1.AutoscalingPolicySpec {
	return v1alpha1.AutoscalingPolicySpec{
		ScaleTargetRef: v1alpha1.CrossVersionObjectReference{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "resize",
		},
		MinReplicas: 1, MaxReplicas: 50, LatencyObjective: metav1.Duration{Duration: time.Minute},
	}
}

// reading is a fresh one of a pool that keeps up.
func reading(ready, publish float64) backlog.Reading {
	return backlog.Reading{
		At: noon(), Type: backlog.Shared, Window: 10 * time.Second,
		Total: backlog.Known(ready), Ready: backlog.Known(ready), LeastReady: backlog.Known(ready),
		Delayed: backlog.Known(0), Unacked: backlog.Known(0), Undispatched: backlog.Known(ready), LeastUndispatched: backlog.Known(0),
		PublishRate: backlog.Known(publish), ProcessRate: backlog.Known(publish), Consumers: backlog.Known(1),
	}
}

func input(current int32, r backlog.Reading) policy.Input {
	return policy.Input{Now: noon(), Spec: spec(), CurrentReplicas: current, Reading: r, FreshFor: 30 * time.Second}
}

func TestDecide(t *testing.T) {
	tests := map[string]struct {
		in       policy.Input
		state    policy.State
		want     int32
		hold     string
		cappedBy string
		equation string
	}{
		"holds enough replicas for the arrivals with room for what may come": {
			in:    input(5, reading(0, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  6, equation: "500/s arriving / (0.93 x 100/s per replica) = 5.38",
		},
		"adds what works the backlog off within the objective": {
			in:    input(5, reading(62_500, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  22, equation: "(500/s arriving + 60000 waiting / 36s) / 100/s per replica = 21.67",
		},
		"counts what will have joined the backlog when help is there": {
			in:    input(1, reading(0, 500)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(500)},
			want:  8, equation: "(500/s arriving + 10000 waiting / 36s) / 100/s per replica = 7.78",
		},
		"goes down to what the arrivals need": {
			in:    input(8, reading(0, 50)),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)},
			want:  1,
		},
		"holds the larger recommendation of the stabilization window": {
			in: input(8, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.Recommendation{{At: noon().Add(-time.Minute), Replicas: 3}},
			},
			want: 3, hold: policy.HoldStabilizing,
		},
		"waits with a step down that saves little of what is soon to be saved": {
			in: input(8, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.Recommendation{{At: noon().Add(-time.Minute), Replicas: 6}},
			},
			want: 8, hold: policy.HoldStabilizing,
		},
		"forgets a recommendation when the window has passed": {
			in: input(8, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.Recommendation{{At: noon().Add(-2 * time.Minute), Replicas: 6}},
			},
			want: 1,
		},
		"does not let an old recommendation raise replicas": {
			in: input(2, reading(0, 50)),
			state: policy.State{
				Capacity: learned(100), Arrivals: arrivals(50),
				Recommendations: []policy.Recommendation{{At: noon().Add(-time.Minute), Replicas: 6}},
			},
			want: 2, hold: policy.HoldStabilizing,
		},
		"keeps to maxReplicas": {
			in: input(1, reading(0, 50_000)), state: policy.State{Capacity: learned(100)}, want: 50, cappedBy: "maxReplicas",
		},
		"keeps to minReplicas": {
			in: func() policy.Input {
				in := input(5, reading(0, 50))
				in.Spec.MinReplicas = 3
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 3, cappedBy: "minReplicas",
		},
		"holds replicas while the broker is down": {
			in: func() policy.Input {
				in := input(7, backlog.Reading{})
				in.Unknown = fmt.Errorf("%w: no good answer since noon", backlog.ErrStale)
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 7, hold: policy.HoldUnknown,
		},
		"does not go down on an old reading": {
			in: func() policy.Input {
				in := input(7, reading(0, 50))
				in.Reading.At, in.Reading.Trouble = noon().Add(-31*time.Second), errors.New("connection refused")
				return in
			}(),
			state: policy.State{Capacity: learned(100), Arrivals: arrivals(50)}, want: 7, hold: policy.HoldOldReading,
		},
		"goes up on an old reading": {
			in: func() policy.Input {
				in := input(1, reading(0, 500))
				in.Reading.At = noon().Add(-31 * time.Second)
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 8,
		},
		"does not go up while dispatch is blocked": {
			in: func() policy.Input {
				in := input(2, reading(0, 500))
				in.Reading.Blocked = true
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 2, hold: policy.HoldBlocked,
		},
		"doubles when work piles up and no replica was measured yet": {
			in: func() policy.Input {
				in := input(3, reading(6000, 500))
				in.Reading.Consumers = backlog.Known(3)
				return in
			}(),
			want: 6, equation: "6000 waiting > 10s of 500/s arriving: twice the 3 replicas",
		},
		"does not double before all replicas consume": {
			in: func() policy.Input {
				in := input(4, reading(6000, 500))
				in.Reading.Consumers = backlog.Known(3)
				return in
			}(),
			want: 4, hold: policy.HoldLearning,
		},
		"tries one fewer when nothing waits and no replica was measured yet": {
			in: input(4, reading(0, 50)), want: 3, equation: "nothing waiting at 50/s arriving: one fewer than 4 replicas",
		},
		"waits for a rate": {
			in: func() policy.Input {
				in := input(4, reading(0, 50))
				in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 4, hold: policy.HoldLearning,
		},
		"divides the backlog by what one replica may have waiting": {
			in: func() policy.Input {
				in := input(1, reading(2001, 50))
				in.Spec.Strategies = []v1alpha1.Strategy{{
					Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 1000},
				}}
				return in
			}(),
			want: 3, equation: "2001 waiting / 1000 per replica = 2.00",
		},
		"follows the strategy that asks for the most": {
			in: func() policy.Input {
				in := input(1, reading(100, 500))
				in.Spec.Strategies = []v1alpha1.Strategy{
					{Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 1000}},
					{Type: v1alpha1.StrategyCapacity},
				}
				return in
			}(),
			state: policy.State{Capacity: learned(100)}, want: 8,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			decision, _ := policy.Decide(test.in, test.state)
			require.Equal(t, test.want, decision.Replicas, "equation: %s", decision.Equation)
			require.Equal(t, test.cappedBy, decision.CappedBy)
			if test.hold == "" {
				require.Nil(t, decision.Hold)
			} else {
				require.NotNil(t, decision.Hold)
				require.Equal(t, test.hold, decision.Hold.Reason)
				require.NotEmpty(t, decision.Hold.Message)
			}
			if test.equation != "" {
				require.Equal(t, test.equation, decision.Equation)
			}
		})
	}
}

func TestCapacityIsLearnedOnlyFromReplicasThatWereBusyThroughout(t *testing.T) {
	busy := reading(5000, 400)
	busy.ProcessRate, busy.Consumers, busy.SteadyConsumers = backlog.Known(300), backlog.Known(3), true
	busy.LeastUndispatched = backlog.Known(2000)
	tests := map[string]struct {
		change func(*backlog.Reading)
		want   float64 // 0: nothing learned
	}{
		"something was always left to dispatch":               {func(*backlog.Reading) {}, 100},
		"everything was dispatched at some time":              {func(r *backlog.Reading) { r.LeastUndispatched = backlog.Known(0) }, 0},
		"only what was published a moment ago":                {func(r *backlog.Reading) { r.LeastUndispatched = backlog.Known(5) }, 0},
		"a replica joined":                                    {func(r *backlog.Reading) { r.SteadyConsumers = false }, 0},
		"dispatch was blocked":                                {func(r *backlog.Reading) { r.Blocked = true }, 0},
		"nothing was processed":                               {func(r *backlog.Reading) { r.ProcessRate = backlog.Known(0) }, 0},
		"the number of consumers is unknown":                  {func(r *backlog.Reading) { r.Consumers = backlog.Unknown(backlog.ErrNotAsked) }, 0},
		"several consumers of a Failover subscription":        {func(r *backlog.Reading) { r.LeastUndispatched = backlog.Unknown(backlog.ErrNoData) }, 0},
		"one consumer that held all of more than it could do": {func(r *backlog.Reading) { r.LeastUndispatched, r.Consumers = backlog.Known(0), backlog.Known(1) }, 300},
		"one consumer that nearly ran dry": {func(r *backlog.Reading) {
			r.LeastUndispatched, r.Consumers, r.LeastReady = backlog.Known(0), backlog.Known(1), backlog.Known(299)
		}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := busy
			test.change(&r)
			_, after := policy.Decide(input(3, r), policy.State{})
			if test.want == 0 {
				require.Nil(t, after.Capacity)
				return
			}
			require.NotNil(t, after.Capacity)
			require.InDelta(t, test.want, after.Capacity.MessagesPerSecond, 1e-9)
		})
	}
}

func TestNothingGoesDownWithinAWindowOfARestart(t *testing.T) {
	status := v1alpha1.AutoscalingPolicyStatus{Capacity: &v1alpha1.Capacity{Observations: 9}}
	status.Capacity.MessagesPerSecond.SetMilli(98_500)
	state, err := policy.Resume(status, 9, noon())
	require.NoError(t, err)
	require.InDelta(t, 98.5, state.Capacity.MessagesPerSecond, 1e-9)
	for second := 0; second <= 130; second += 10 {
		in := input(9, reading(0, 50))
		in.Now = noon().Add(time.Duration(second) * time.Second)
		in.Reading.At = in.Now
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		if second < 90 {
			require.Equal(t, int32(9), decision.Replicas, "after %d s", second)
		} else {
			require.Equal(t, int32(1), decision.Replicas, "after %d s", second)
		}
	}
}

// scenario is a random input whose parts are all known.
func scenario(r *rand.Rand) (policy.Input, policy.State) {
	current := 1 + r.Int32N(40)
	in := input(current, reading(math.Floor(r.ExpFloat64()*5000), r.ExpFloat64()*500))
	in.Spec.MinReplicas = 1 + r.Int32N(3)
	in.Spec.MaxReplicas = in.Spec.MinReplicas + r.Int32N(60)
	in.Reading.At = in.Now.Add(-time.Duration(r.IntN(60)) * time.Second)
	in.Reading.Consumers = backlog.Known(float64(r.Int32N(current + 1)))
	in.Reading.SteadyConsumers, in.Reading.Blocked = r.IntN(2) == 0, r.IntN(10) == 0
	in.Reading.LeastUndispatched = backlog.Known(math.Floor(r.ExpFloat64() * 100))
	state := policy.State{DecidedAt: in.Now.Add(-10 * time.Second)}
	if r.IntN(3) > 0 {
		state.Capacity, state.Arrivals = learned(1+r.ExpFloat64()*100), arrivals(r.ExpFloat64()*500)
	}
	for range r.IntN(4) {
		state.Recommendations = append(state.Recommendations, policy.Recommendation{
			At: in.Now.Add(-time.Duration(r.IntN(200)) * time.Second), Replicas: 1 + r.Int32N(40),
		})
	}
	return in, state
}

func TestDecisionsKeepTheirPromises(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		in, state := scenario(r)
		decision, _ := policy.Decide(in, state)
		require.GreaterOrEqual(t, decision.Replicas, in.Spec.MinReplicas)
		require.LessOrEqual(t, decision.Replicas, in.Spec.MaxReplicas)

		again, _ := policy.Decide(in, state)
		require.Equal(t, decision, again, "the same input gives the same decision")

		unknown := in
		unknown.Unknown = backlog.ErrUnreachable
		held, _ := policy.Decide(unknown, state)
		require.GreaterOrEqual(t, held.Replicas, min(in.CurrentReplicas, in.Spec.MaxReplicas), "what is unknown never lowers replicas")

		if in.Now.Sub(in.Reading.At) > in.FreshFor {
			require.GreaterOrEqual(t, decision.Replicas, min(in.CurrentReplicas, in.Spec.MaxReplicas), "an old reading never lowers replicas")
		}
	}
}

func TestMoreWorkNeverAsksForFewerReplicas(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		in, state := scenario(r)
		if state.Capacity == nil {
			continue // without a capacity there is no formula to be monotonous
		}
		in.Reading.SteadyConsumers = false // learning nothing, so that only the load differs
		less, _ := policy.Decide(in, state)
		more := in
		ready, err := in.Reading.Ready.Value()
		require.NoError(t, err)
		published, err := in.Reading.PublishRate.Value()
		require.NoError(t, err)
		// More arrivals make more of the backlog normal, so the backlog grows by more than that.
		extra := r.ExpFloat64() * 100
		more.Reading.PublishRate = backlog.Known(published + extra)
		more.Reading.Ready = backlog.Known(ready + 10*extra + math.Floor(r.ExpFloat64()*1000))
		higher, _ := policy.Decide(more, state)
		require.GreaterOrEqual(t, higher.Wanted, less.Wanted)
	}
}

func TestScalingEveryQuantityAlikeChangesNothing(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 5_000 {
		in, state := scenario(r)
		if state.Capacity == nil {
			continue
		}
		in.Reading.SteadyConsumers = false
		decision, _ := policy.Decide(in, state)
		const c = 4 // a power of two keeps floating point exact
		ready, _ := in.Reading.Ready.Value()
		published, _ := in.Reading.PublishRate.Value()
		in.Reading.Ready, in.Reading.PublishRate = backlog.Known(c*ready), backlog.Known(c*published)
		in.Reading.Undispatched = backlog.Known(c * ready)
		state.Arrivals = arrivals(c * state.Arrivals.Fast)
		state.Capacity = learned(c * state.Capacity.MessagesPerSecond)
		scaled, _ := policy.Decide(in, state)
		require.Equal(t, decision.Replicas, scaled.Replicas)
	}
}
