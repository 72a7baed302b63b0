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

func TestContradictedCountersRemoveNoReplica(t *testing.T) {
	tests := map[string]struct {
		published, processed, grown, finished backlog.Measurement
		contradicted                          bool
		kind                                  backlog.SubscriptionType
	}{
		"nothing arrives, and the instances finish hundreds": {
			backlog.Known(0), backlog.Known(0), backlog.Known(0), backlog.Known(300), true, backlog.Shared,
		},
		"nothing arrives, and the instances that answer finish hundreds": {
			backlog.Known(0), backlog.Known(0), backlog.Known(0), backlog.AtLeast(300, backlog.ErrPartial), true, backlog.Shared,
		},
		"nothing arrives, and the backlog grows": {
			backlog.Known(0), backlog.Known(0), backlog.Known(20), backlog.Unknown(backlog.ErrNotRequested), true,
			backlog.Shared,
		},
		"little arrives, and more is finished while the backlog stays": {
			backlog.Known(20), backlog.Known(300), backlog.Known(0), backlog.Known(300), true, backlog.Shared,
		},
		"nothing is processed, and the instances finish hundreds": {
			backlog.Known(300), backlog.Known(0), backlog.Known(0), backlog.Known(300), true, backlog.Shared,
		},
		"a backlog is worked off": {
			backlog.Known(0), backlog.Known(300), backlog.Known(-300), backlog.Known(300), false, backlog.Shared,
		},
		"instances count messages from before the load fell": {
			backlog.Known(40), backlog.Known(300), backlog.Known(-100), backlog.Known(300), false, backlog.Shared,
		},
		"a few messages are counted at different times": {
			backlog.Known(0), backlog.Known(0), backlog.Known(0), backlog.Known(4), false, backlog.Shared,
		},
		"consumers of Failover work off their receive queues": {
			backlog.Known(0), backlog.Known(0), backlog.Known(-300), backlog.Known(300), false, backlog.Failover,
		},
		"the one of Exclusive works off its receive queue": {
			backlog.Known(0), backlog.Known(0), backlog.Known(-300), backlog.Known(300), false, backlog.Exclusive,
		},
		"it is not known how the backlog grew": {
			backlog.Known(0), backlog.Known(0), backlog.Unknown(backlog.ErrNoRate), backlog.Known(300), false, backlog.Shared,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(90, 0)
			state.Recommendations = []policy.ReplicasAt{{At: ago(5 * time.Second), Replicas: 4}} // all were needed just now
			in.Reading.PublishRate, in.Reading.ProcessRate, in.Reading.Type = tt.published, tt.processed, tt.kind
			in.Reading.GrowthRate, in.Reading.Instances.ProcessRate = tt.grown, tt.finished

			after, least := state, in.CurrentReplicas
			var decision policy.Decision
			for range 12 {
				decision, after = policy.Decide(in, after)
				least = min(least, decision.Replicas)
				in.Now, in.Reading.At = in.Now.Add(10*time.Second), in.Reading.At.Add(10*time.Second)
			}
			if !tt.contradicted {
				require.Less(t, least, in.CurrentReplicas)
				return
			}
			require.Equal(t, in.CurrentReplicas, least)
			require.Equal(t, policy.HoldUnknown, decision.Hold.Reason)
			require.Contains(t, decision.Hold.Message, "look for what alters answers")
			require.Equal(t, state.Arrivals, after.Arrivals, "nothing is learned of arrivals")
			require.Equal(t, state.Capacity, after.Capacity, "and capacity is not learned")
		})
	}
}

func TestTheLastReplicaStaysWhileInstancesFinishWork(t *testing.T) {
	require.Equal(t, -1, wentToZero(func(_ int, in *policy.Input) {
		in.Reading.GrowthRate, in.Reading.Instances.ProcessRate = backlog.Known(0), backlog.Known(30)
	}))
}

func TestAnImplausibleAnswerWakesOneReplica(t *testing.T) {
	tests := map[string]struct {
		ready, unconfirmed float64
		backoff            time.Duration
		want               int32 // at least
		equation           string
	}{
		"an empty backlog": {want: 0, equation: "no backlog = 0"},
		"an unconfirmed backlog of a million": {
			unconfirmed: 1e6, want: 1, equation: "woken from zero: 1000000 unconfirmed backlog = 1",
		},
		"but not during the back-off of wakes": {unconfirmed: 1e6, backoff: time.Hour, want: 0, equation: "no backlog = 0"},
		"the accepted backlog sizes the wake":  {ready: 36_000, unconfirmed: 1e6, want: 11},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := idle(0, 0)
			in.Reading.Ready, in.Reading.Unconfirmed = backlog.Known(tt.ready), tt.unconfirmed
			state := policy.State{Capacity: learned(100), Arrivals: arrivals(100)}
			state.Zero.Since, state.Zero.Backoff = in.Now.Add(-30*time.Minute), tt.backoff

			decision, _ := policy.Decide(in, state)

			require.GreaterOrEqual(t, decision.Replicas, tt.want)
			if tt.equation != "" {
				require.Equal(t, tt.want, decision.Replicas)
				require.Equal(t, tt.equation, decision.Equation)
			}
		})
	}
}

// surging is a load of 100/s that Pulsar counts as 10,000/s for half a minute. Of the others a share is in the backlog,
// and a share is finished.
func surging(poll int, waiting, finished float64) policy.Input {
	const calm, surge, from, until, seconds = 100, 10_000, 30, 33, 10
	in := doing(10, calm, poll)
	rate, waits := float64(calm), waiting*seconds*surge*float64(min(max(0, poll-from), until-from))
	if poll > from && poll <= until {
		rate = surge
		in.Reading.ProcessRate = backlog.Known(calm + finished*surge)
	}
	in.Reading.PublishRate = backlog.Known(rate)
	in.Reading.Ready, in.Reading.LeastReady = backlog.Known(waits), backlog.Known(waits)
	in.Reading.Undispatched, in.Reading.LeastUndispatched = backlog.Known(0), backlog.Known(0)
	in.Reading.Instances.Busy = backlog.Known(0.5)
	return in
}

func TestASurgeIsTakenBackIfItsMessagesAreNotFound(t *testing.T) {
	unknown := func(m func(*backlog.Reading) *backlog.Measurement) func(*backlog.Reading) {
		return func(r *backlog.Reading) { *m(r) = backlog.Unknown(backlog.ErrNoRate) }
	}
	tests := map[string]struct {
		waiting, finished float64
		change            func(*backlog.Reading)
		stays             bool
	}{
		"neither finished nor in the backlog": {},
		"hardly any are found":                {waiting: 0.1, finished: 0.1},
		"in the backlog":                      {waiting: 0.9, stays: true},
		"finished":                            {finished: 0.9, stays: true},
		"some of both":                        {waiting: 0.4, finished: 0.4, stays: true},
		"finished, and few instances answer": {finished: 0.9, stays: true, change: func(r *backlog.Reading) {
			r.Instances.ProcessRate = backlog.AtLeast(100, backlog.ErrPartial)
		}},
		"the backlog is unknown": {
			change: unknown(func(r *backlog.Reading) *backlog.Measurement { return &r.Ready }), stays: true,
		},
		"what was finished is unknown": {
			change: unknown(func(r *backlog.Reading) *backlog.Measurement { return &r.ProcessRate }), stays: true,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			polled := func(poll int) policy.Input {
				in := surging(poll, tt.waiting, tt.finished)
				if tt.change != nil && poll > 30 {
					tt.change(&in.Reading)
				}
				return in
			}
			state := policy.State{Capacity: covering(0.9)}
			calm := after(state, 30, polled)
			during := after(state, 33, polled)
			require.Greater(t, during.Arrivals.Peak, 5000.0)
			over := after(state, 35, polled) // two polls after the counters fell back
			if tt.stays {
				require.Greater(t, over.Arrivals.Peak, 5000.0)
				require.Greater(t, over.Arrivals.Rise, calm.Arrivals.Rise)
				return
			}
			require.InDelta(t, 100, over.Arrivals.Rate, 1e-9)
			require.LessOrEqual(t, over.Arrivals.Peak, calm.Arrivals.Peak*1.01)
			require.LessOrEqual(t, over.Arrivals.Rise, calm.Arrivals.Rise)
			require.Zero(t, over.Arrivals.Surge)
		})
	}
}
