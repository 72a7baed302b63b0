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

// A message that takes long, or that no replica can finish, is work for one replica: without arrivals and a learned
// state it scaled a new policy from 1 to 50 replicas within a minute.
func TestReplicasDoNotExceedTheMessages(t *testing.T) {
	for ready, most := range map[float64]int32{1: 1, 3: 3, 40: 40} {
		state, current := policy.State{}, int32(1)
		for second := 10; second <= 100; second += 10 {
			in := input(current, reading(ready, 0))
			in.Spec.MaxReplicas = 100
			in.Now = noon().Add(time.Duration(second) * time.Second)
			in.Reading.At = in.Now
			in.Reading.Consumers = backlog.Known(float64(current))
			var decision policy.Decision
			decision, state = policy.Decide(in, state)
			current = decision.Replicas
		}
		require.Equal(t, most, current, "%.0f messages", ready)
	}
}
