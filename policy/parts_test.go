// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestEachPartHasAName(t *testing.T) {
	all := policy.Part(0)
	for _, name := range policy.PartNames() {
		part, err := policy.ParsePart(name)
		require.NoError(t, err)
		require.Equal(t, 1, bits.OnesCount32(uint32(part)), name)
		require.Zero(t, all&part, "%s has a bit of its own", name)
		all |= part
	}
	require.Equal(t, len(policy.PartNames()), bits.OnesCount32(uint32(all)))
	_, err := policy.ParsePart("luck")
	require.ErrorContains(t, err, `"luck" is no part of the algorithm: use one of busy-time, `)
}

func TestTheNamesOfPartsAreInTheOrderOfTheirBits(t *testing.T) {
	for name, want := range map[string]policy.Part{
		"busy-time": policy.PartBusyTime, "trend": policy.PartTrend, "headroom": policy.PartHeadroom,
		"lazy-up":    policy.PartLazyUp,
		"least-down": policy.PartLeastDown, "cautious-down": policy.PartCautiousDown, "patient-down": policy.PartPatientDown,
		"recurrence": policy.PartRecurrence,
		"plateau":    policy.PartPlateau, "failover": policy.PartFailover, "floor": policy.PartFloor,
		"exceptions": policy.PartExceptions,
		"start":      policy.PartStart, "restarts": policy.PartRestarts, "key-shared": policy.PartKeyShared,
		"pods": policy.PartPods,
	} {
		have, err := policy.ParsePart(name)
		require.NoError(t, err)
		require.Equal(t, want, have, name)
	}
}

// troubled is an input with a case for every part.
func troubled(r *rand.Rand, in policy.Input, state policy.State) (policy.Input, policy.State) {
	if r.IntN(3) == 0 {
		in.Reading.Type = backlog.KeyShared
	}
	state.Start = policy.Start{
		Replicas: in.CurrentReplicas, Changed: in.Now.Add(
			-time.Duration(r.IntN(300)) * time.Second), Seconds: 60 * r.Float64(), Count: 5, Restarts: r.Int32N(2),
	}
	in.Pods = &policy.Pods{CrashLooping: r.Int32N(3), Updating: r.IntN(5) == 0}
	in.Reading.Instances.UserExceptionRate, in.Reading.Instances.ProcessRate = backlog.Known(
		r.Float64()*100), backlog.Known(r.Float64()*100)
	ready, _ := in.Reading.Ready.Value()
	state.Floor.Messages = ready * r.Float64()
	state.Recurrence = policy.Recurrence{
		At: in.Now.Add(-time.Duration(r.IntN(3600)) * time.Second), After: time.Duration(r.IntN(300)) * time.Second,
	}
	return in, state
}

// A part without any effect is no part.
func TestEachPartChangesADecision(t *testing.T) {
	for _, name := range policy.PartNames() {
		part, err := policy.ParsePart(name)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			differing := 0
			eachInput(8, func(r *rand.Rand, in policy.Input, state policy.State) {
				if in.Unknown != nil {
					return
				}
				in, state = troubled(r, capacityAlone(in), state)
				with, _ := policy.Decide(in, state)
				in.Without = part
				without, _ := policy.Decide(in, state)
				if with.Replicas != without.Replicas {
					differing++
				}
			})
			for seed := range uint64(30) { // the learned state has its effect later
				with, without := newLife(seed), newLife(seed)
				without.in.Without = part
				for range 100 {
					if with.step().Replicas != without.step().Replicas {
						differing++
						break
					}
				}
			}
			require.Greater(t, differing, 3)
		})
	}
}
