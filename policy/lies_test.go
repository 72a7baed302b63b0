// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// lied changes readings of a plant with a constant load for ten minutes, and returns the replicas before and after, the
// fewest and the most in between, and the most messages that waited.
func lied(lie func(polls int, r *backlog.Reading)) (before, least, most int32, waiting float64) {
	p := newPlant(8, 70, 10).knowing()
	p.run(hour)
	before, least, most = p.in.CurrentReplicas, p.in.CurrentReplicas, p.in.CurrentReplicas
	p.change = func(second int, in *policy.Input) { lie((second-hour)/10, &in.Reading) }
	for range 60 {
		p.run(10)
		least, most = min(least, p.in.CurrentReplicas), max(most, p.in.CurrentReplicas)
		waiting = max(waiting, p.queue)
	}
	return before, least, most, waiting
}

func TestACounterThatDriftsMovesFewReplicas(t *testing.T) {
	t.Parallel()
	drift := func(of func(*backlog.Reading) *backlog.Measurement, factor float64) func(int, *backlog.Reading) {
		return func(polls int, r *backlog.Reading) {
			rate, _ := of(r).Value()
			*of(r) = backlog.Known(rate * min(4, max(0.25, math.Pow(factor, float64(polls)))))
		}
	}
	published := func(r *backlog.Reading) *backlog.Measurement { return &r.PublishRate }
	processed := func(r *backlog.Reading) *backlog.Measurement { return &r.ProcessRate }
	finished := func(r *backlog.Reading) *backlog.Measurement { return &r.Instances.ProcessRate }
	for name, lie := range map[string]func(int, *backlog.Reading){
		"published, up": drift(published, 1.05), "published, down": drift(published, 0.95),
		"delivered, up": drift(processed, 1.05), "delivered, down": drift(processed, 0.95),
		"finished by the instances, up": drift(finished, 1.05), "finished by the instances, down": drift(finished, 0.95),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, least, most, waiting := lied(lie)
			require.GreaterOrEqual(t, least, before-3)
			require.LessOrEqual(t, most, before+4)
			require.Less(t, waiting, 70*45.0, "45 s of arrivals, with an objective of 60 s")
		})
	}
}

// Expired messages were published and are neither finished nor in the backlog: an overload, and no lie.
func TestMessagesThatExpireAreArrivals(t *testing.T) {
	t.Parallel()
	p := newPlant(2, 70, 10).knowing()
	p.rate = func(second int) float64 {
		p.queue = min(p.queue, 30*70) // all older ones expire
		return 70
	}
	p.run(10 * 60)
	require.GreaterOrEqual(t, p.in.CurrentReplicas, int32(8))
}

func TestAFlagThatReplicasContradictIsNotBelieved(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*backlog.Reading)
		busy   float64
		hold   string // empty if replicas are added
	}{
		"blocked, and replicas have nothing to do": {
			change: func(r *backlog.Reading) { r.Blocked = true }, busy: 0.1, hold: policy.HoldDispatchLimited,
		},
		"blocked, and replicas process what they hold": {
			change: func(r *backlog.Reading) { r.Blocked, r.DeliveryRate = true, backlog.Known(0) },
			busy:   usual, hold: policy.HoldDispatchLimited,
		},
		"blocked, and replicas receive as much as they can process": {
			change: func(r *backlog.Reading) { r.Blocked, r.DeliveryRate = true, backlog.Known(400) }, busy: usual,
		},
		"throttled, and replicas have nothing to do": {
			change: func(r *backlog.Reading) { r.Throttled = true }, busy: 0.4, hold: policy.HoldDispatchLimited,
		},
		"throttled, and replicas process as much as they can": {
			change: func(r *backlog.Reading) { r.Throttled = true }, busy: usual,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, state := wanting(600, 30_000)
			state.Capacity = covering(usual)
			in.Reading = timed(in.Reading, 4, test.busy, 400)
			in.Reading.ProcessRate = backlog.Known(400)
			test.change(&in.Reading)
			decision, _ := policy.Decide(in, state)
			if test.hold == "" {
				require.Greater(t, decision.Replicas, in.CurrentReplicas)
				return
			}
			require.Equal(t, in.CurrentReplicas, decision.Replicas)
			require.Equal(t, test.hold, decision.Hold.Reason)
		})
	}
}

// A subscription's type cannot change while consumers are connected.
func TestAnotherSubscriptionTypeCountsOnceNoConsumerIsConnected(t *testing.T) {
	t.Parallel()
	p := newPlant(8, 70, 10).knowing()
	p.run(600)
	failover := func(consumers float64) backlog.SubscriptionType {
		p.change = func(_ int, in *policy.Input) {
			in.Reading.Type = backlog.Failover
			if consumers == 0 {
				in.Reading.Consumers = backlog.Known(0)
			}
		}
		p.run(p.poll)
		return p.state.Type.Is
	}
	require.Equal(t, backlog.Shared, failover(8))
	require.Equal(t, backlog.Shared, failover(8), "however often it is reported")
	require.Equal(t, backlog.Failover, failover(0))

	p = newPlant(8, 70, 10).knowing()
	p.run(600)
	for range 60 {
		require.Equal(t, backlog.Shared, failover(8))
	}
	require.Equal(t, backlog.Failover, failover(8), "after ten minutes")
}
