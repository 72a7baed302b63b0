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
	}{
		"nothing arrives, and the instances finish hundreds": {
			backlog.Known(0), backlog.Known(0), backlog.Known(0), backlog.Known(300), true,
		},
		"nothing arrives, and the backlog grows": {
			backlog.Known(0), backlog.Known(0), backlog.Known(20), backlog.Unknown(backlog.ErrNotRequested), true,
		},
		"little arrives, and more is finished while the backlog stays": {
			backlog.Known(20), backlog.Known(300), backlog.Known(0), backlog.Known(300), true,
		},
		"nothing is processed, and the instances finish hundreds": {
			backlog.Known(300), backlog.Known(0), backlog.Known(0), backlog.Known(300), true,
		},
		"a backlog is worked off": {
			backlog.Known(0), backlog.Known(300), backlog.Known(-300), backlog.Known(300), false,
		},
		"instances count messages from before the load fell": {
			backlog.Known(40), backlog.Known(300), backlog.Known(-100), backlog.Known(300), false,
		},
		"a few messages are counted at different times": {
			backlog.Known(0), backlog.Known(0), backlog.Known(0), backlog.Known(4), false,
		},
		"it is not known how the backlog grew": {
			backlog.Known(0), backlog.Known(0), backlog.Unknown(backlog.ErrNoRate), backlog.Known(300), false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(90, 0)
			in.Reading.PublishRate, in.Reading.ProcessRate = tt.published, tt.processed
			in.Reading.GrowthRate, in.Reading.Instances.ProcessRate = tt.grown, tt.finished

			decision, after := policy.Decide(in, state)

			if !tt.contradicted {
				require.Less(t, decision.Replicas, in.CurrentReplicas)
				return
			}
			require.Equal(t, in.CurrentReplicas, decision.Replicas)
			require.Equal(t, policy.HoldContradicted, decision.Hold.Reason)
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
		want               int32
		equation           string
	}{
		"an empty backlog": {want: 0, equation: "no backlog = 0"},
		"an unconfirmed backlog of a million": {
			unconfirmed: 1e6, want: 1, equation: "woken from zero: 1000000 unconfirmed backlog = 1",
		},
		"but not during the back-off of wakes": {unconfirmed: 1e6, backoff: time.Minute, want: 0, equation: "no backlog = 0"},
		"the accepted backlog sizes the wake":  {ready: 36_000, unconfirmed: 1e6, want: 11},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := idle(0, 0)
			in.Reading.Ready, in.Reading.Unconfirmed = backlog.Known(tt.ready), tt.unconfirmed
			state := policy.State{Capacity: learned(100), Arrivals: arrivals(100)}
			state.Zero.Until = in.Now.Add(tt.backoff)
			state.Zero.Since = in.Now.Add(-time.Hour)

			decision, _ := policy.Decide(in, state)

			require.Equal(t, tt.want, decision.Replicas)
			if tt.equation != "" {
				require.Equal(t, tt.equation, decision.Equation)
			}
		})
	}
}
