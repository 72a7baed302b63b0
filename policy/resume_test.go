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

func TestOneObservationAfterARestartDoesNotReplaceTheCapacity(t *testing.T) {
	status := v1alpha1.AutoscalingPolicyStatus{Capacity: &v1alpha1.Capacity{Observations: 90}}
	status.Capacity.MessagesPerSecond.SetMilli(100_000)
	state, err := policy.Resume(status, 1, noon())
	require.NoError(t, err)
	in := input(1, reading(5000, 50))
	in.Now = noon().Add(15 * time.Second)
	in.Reading.At, in.Reading.SteadyConsumers = in.Now, true
	in.Reading.ProcessRate, in.Reading.LeastUndispatched = backlog.Known(20), backlog.Known(1000)
	_, after := policy.Decide(in, state)
	require.InDelta(t, 100, after.Capacity.MessagesPerSecond, 1e-9, "a single outlier is ignored")
}

func TestReplicasStayForAWindowAfterARestart(t *testing.T) {
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
		if second < 30 {
			require.Equal(t, int32(9), decision.Replicas, "after %d s", second)
		} else {
			require.Equal(t, int32(1), decision.Replicas, "after %d s", second)
		}
	}
}
