// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// A scale-down that is reversed later costs 7 s of all replicas and 40 s of one. It pays if that is less than the
// replicas that stay for the next period.
func TestARecurringLoadIsFollowedOnlyWhereThatPays(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sawtooth-165", "sawtooth-200", "sawtooth-300"} {
		s := named(name)
		staying := newCapacity(s).spec
		staying.Behavior = &v1alpha1.Behavior{
			ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: new(int32(600))},
		}
		for seed := range uint64(3) {
			_, score := After(s, s, Without(), seed)
			_, stays := After(s, s, Policy(staying), seed)
			price := 0.0
			for second, replicas := range score.Trace[1:] {
				if replicas < score.Trace[second] {
					price += 7*float64(score.Trace[second]) + 40
				}
			}
			require.Less(t, score.ReplicaSeconds+price, stays.ReplicaSeconds, "%s, seed %d", name, seed)
			require.Less(t, score.LateShare(), 0.001, "%s, seed %d", name, seed)
		}
	}
}

func TestABurstOfTenSecondsIsPaidForOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		s := named("burst-10s")
		_, score := After(s, s, Without(), seed)
		require.LessOrEqual(t, slices.Max(score.Trace[25*60:]), int32(18), "seed %d", seed)
		require.Less(t, score.LateShare(), 0.001, "seed %d", seed)
	}
}
