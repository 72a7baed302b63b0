// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestARecurringLoadRarelyChangesReplicas(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sawtooth-165", "sawtooth-200", "sawtooth-300"} {
		for seed := range uint64(3) {
			score := followed(named(name), Without(0), seed).Score()
			require.LessOrEqual(t, score.Actions, 20, "%s, seed %d", name, seed)
			require.LessOrEqual(t, score.Flaps, 8, "%s, seed %d", name, seed)
			require.Less(t, score.LateShare(), 0.001, "%s, seed %d", name, seed)
		}
	}
}

func TestABurstOfTenSecondsIsPaidForOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		score := followed(named("burst-10s"), Without(0), seed).Score()
		require.LessOrEqual(t, slices.Max(score.Trace[25*60:]), int32(18), "seed %d", seed)
		require.Less(t, score.LateShare(), 0.001, "seed %d", seed)
	}
}
