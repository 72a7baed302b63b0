// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// resting are two replicas with this busy time and this backlog.
func resting(poll int, ready, busy float64) policy.Input {
	in := showing(poll, 50, busy, false)
	in.Reading.Ready, in.Reading.Total, in.Reading.LeastReady = backlog.Known(
		ready), backlog.Known(ready), backlog.Known(ready)
	return in
}

func TestTheFloorOfABacklog(t *testing.T) {
	tests := map[string]struct {
		polls  int
		change func(poll int, in *policy.Input)
		want   float64
	}{
		"is the backlog while replicas are idle": {2, func(int, *policy.Input) {}, 500},
		"is nothing while a few replicas work it off": {9, func(_ int, in *policy.Input) {
			in.Reading.ProcessRate, in.Reading.PublishRate = backlog.Known(14), backlog.Known(10)
		}, 0},
		"is a backlog that is drained too slowly": {9, func(_ int, in *policy.Input) {
			in.Reading.ProcessRate, in.Reading.PublishRate = backlog.Known(10.5), backlog.Known(10)
		}, 500},
		"needs two polls": {1, func(int, *policy.Input) {}, 0},
		"needs two consecutive polls": {3, func(poll int, in *policy.Input) {
			in.Reading.Instances.Busy = backlog.Known([]float64{0.1, 0.8, 0.1}[poll-1])
		}, 0},
		"is nothing while replicas are busy": {
			9,
			func(_ int, in *policy.Input) { in.Reading.Instances.Busy = backlog.Known(0.65) }, 0,
		},
		"grows while replicas rest": {
			3,
			func(poll int, in *policy.Input) { in.Reading.Ready = backlog.Known(100 * float64(poll)) }, 300,
		},
		"does not grow while they are busy": {3, func(poll int, in *policy.Input) {
			if poll == 3 {
				*in = resting(3, 900, 0.9)
			}
		}, 500},
		"is the least that waited in two polls": {2, func(poll int, in *policy.Input) {
			in.Reading.LeastReady = backlog.Known([]float64{300, 400}[poll-1])
		}, 300},
		"is the least of the last one too": {2, func(poll int, in *policy.Input) {
			in.Reading.LeastReady = backlog.Known([]float64{400, 300}[poll-1])
		}, 300},
		"shrinks by what busy replicas finish beyond the arrivals": {3, func(poll int, in *policy.Input) {
			if poll == 3 {
				*in = resting(3, 500, 0.9)
				in.Reading.ProcessRate, in.Reading.PublishRate = backlog.Known(30), backlog.Known(10)
			}
		}, 300},
		"does not shrink while the process rate is unknown": {3, func(poll int, in *policy.Input) {
			if poll == 3 {
				*in = resting(3, 500, 0.9)
				in.Reading.ProcessRate, in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate), backlog.Known(10)
			}
		}, 500},
		"falls with the backlog": {3, func(poll int, in *policy.Input) {
			if poll == 3 {
				*in = resting(3, 20, 0.9)
			}
		}, 20},
		"stays while the backlog is unknown": {3, func(poll int, in *policy.Input) {
			if poll == 3 {
				in.Reading.Ready = backlog.Unknown(backlog.ErrPartial)
			}
		}, 500},
		"is empty if replicas do not report busy time": {
			9,
			func(_ int, in *policy.Input) { in.Reading.Instances.Busy = backlog.Unknown(backlog.ErrNotRequested) }, 0,
		},
		"is nothing of an asynchronous function": {
			9,
			func(_ int, in *policy.Input) { in.Reading.Instances.Asynchronous = true }, 0,
		},
		"is empty while replicas start": {
			9,
			func(_ int, in *policy.Input) { in.CurrentReplicas = 3 }, 0,
		},
		"is empty while consumers change": {
			9,
			func(_ int, in *policy.Input) { in.Reading.SteadyConsumers = false }, 0,
		},
		"is empty for a Failover subscription": {
			9,
			func(_ int, in *policy.Input) { in.Reading.Type = backlog.Failover }, 0,
		},
		"is empty while less is processed than arrives": {
			9,
			func(_ int, in *policy.Input) { in.Reading.PublishRate = backlog.Known(130) }, 0,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state := policy.State{Capacity: covering(0.9)}
			for poll := 1; poll <= test.polls; poll++ {
				in := resting(poll, 500, 0.1)
				test.change(poll, &in)
				_, state = policy.Decide(in, state)
			}
			require.InDelta(t, test.want, state.Floor.Messages, 1e-9)
		})
	}
}

func TestAFunctionThatMostlyThrowsGetsNoReplicasForItsBacklog(t *testing.T) {
	rate := backlog.Known
	unknown := backlog.Unknown(backlog.ErrNotRequested)
	least := func(rate float64) backlog.Measurement { return backlog.AtLeast(rate, backlog.ErrPartial) }
	tests := map[string]struct {
		failed, processed backlog.Measurement
		helped            bool
	}{
		"more fail than not":               {rate(60), rate(40), false},
		"as many attempts fail as succeed": {rate(50), rate(50), true},
		"more fail of those that answer":   {least(30), least(20), false},
		"all attempts fail":                {rate(60), rate(0), false},
		"no attempt fails":                 {rate(0), rate(100), true},
		"no attempts":                      {rate(0), rate(0), true},
		"the failures are unknown":         {unknown, rate(10), true},
		"the successes are unknown":        {rate(60), unknown, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in := input(2, reading(40_500, 100))
			for i := range 4 {
				in.Partitions = append(in.Partitions,
					backlog.PartitionReading{Index: i, Ready: rate(10_125), PublishRate: rate(25)})
			}
			in.Reading.Instances.UserExceptionRate, in.Reading.Instances.ProcessRate = test.failed, test.processed
			for _, in.Reading.Type = range []backlog.SubscriptionType{backlog.Shared, backlog.Failover} {
				decision, _ := policy.Decide(in,
					policy.State{Arrivals: arrivals(100), Capacity: learned(100), ReadAt: noon().Add(time.Second)})
				require.Equal(t, test.helped, decision.Replicas > 2, "%s: %s", in.Reading.Type, decision.Equation)
			}
		})
	}
}

// A pool with short calls reports at most half of its time as busy. Before coverage was known, the backlog after a stop
// of 20 minutes counted as messages that no replica can process, and took hours to drain.
func TestABacklogIsWorkUntilCoverageIsKnown(t *testing.T) {
	for _, covered := range []float64{0.3, 0.5, 0.6} {
		for _, load := range []float64{0.75, 0.8, 0.9, 0.95} {
			p := newPlant(2, 200*load, 100)
			p.covered, p.in.Spec.MaxReplicas = covered, 20
			p.run(900)
			p.limit = 0.1
			p.run(1200)
			p.limit = math.Inf(1)
			p.run(1200)
			require.Less(t, p.queue, 60*p.rate(0), "covered %g, load %g: %d", covered, load, p.changes())
		}
	}
}

func TestADiscountedBacklogIsShown(t *testing.T) {
	known := policy.State{Capacity: covering(0.9), Arrivals: arrivals(100)}
	tests := map[string]struct {
		ready float64
		hold  string
	}{
		"with a hold if it decides":         {50_000, policy.HoldDiscounted},
		"without one if it changes nothing": {500, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := resting(1, test.ready, 0.1), known
			in.Spec.MaxReplicas = 50
			state.Floor = policy.Floor{Messages: test.ready, Idle: true, Least: test.ready}
			decision, _ := policy.Decide(in, state)
			require.Equal(t, int32(2), decision.Replicas)
			require.InDelta(t, test.ready, decision.Discounted, 1e-9)
			if test.hold == "" {
				require.Nil(t, decision.Hold)
				return
			}
			require.NotNil(t, decision.Hold)
			require.Equal(t, test.hold, decision.Hold.Reason, decision.Hold.Message)
		})
	}
}

// Long calls and acknowledgements in batches leave messages unacknowledged while replicas look idle.
func TestMessagesInACallAreNotDiscounted(t *testing.T) {
	known, unknown := backlog.Known, backlog.Unknown(backlog.ErrNoData)
	tests := map[string]struct {
		unacked, inFlight backlog.Measurement
		want              float64
	}{
		"each replica has one call":               {known(5), unknown, 3},
		"the instances say how many calls":        {known(5), known(4), 1},
		"no more calls than unacknowledged":       {known(1), unknown, 4},
		"none are unacknowledged":                 {known(0), unknown, 5},
		"all are in a call":                       {known(5), known(5), 0},
		"it is not known how many are dispatched": {unknown, unknown, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			state := after(policy.State{Capacity: covering(0.9)}, 4, func(poll int) policy.Input {
				in := resting(poll, 5, 0.1)
				in.Reading.Unacked, in.Reading.Instances.InFlight = tt.unacked, tt.inFlight
				return in
			})
			require.InDelta(t, tt.want, state.Floor.Messages, 1e-9)
		})
	}
}

// Until a replica was saturated, it is not known whether replicas that report little busy time are idle.
func TestABacklogThatNobodyCanProcessIsTriedOnce(t *testing.T) {
	for _, stuck := range []float64{1000, 20_000, 1e6} {
		for _, load := range []float64{0.2, 0.5} {
			p := newPlant(2, 200*load, 100)
			p.stuck, p.in.Spec.MaxReplicas = stuck, 20
			p.run(6 * hour)
			require.LessOrEqual(t, p.raises(0), 1, "%g stuck, load %g: %d", stuck, load, p.changes())
			require.InDelta(t, stuck, p.state.Floor.Messages, 0.01*stuck+1, "%g stuck, load %g", stuck, load)
			require.Empty(t, p.actions(hour), "%g stuck, load %g: %d", stuck, load, p.changes())
			require.LessOrEqual(t, p.in.CurrentReplicas, int32(2))
		}
	}
}
