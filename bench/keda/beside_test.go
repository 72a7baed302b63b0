// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAStepComesMidwayBetweenTwoLooksOfKEDA(t *testing.T) {
	for since, want := range map[float64]float64{0: 15, 1: 14, 14: 1, 16: 29, 29.5: 15.5, 31: 14, 92: 13} {
		require.Equal(t, time.Duration(want*float64(time.Second)), untilMidway(at(0), at(since)), "%g s after a look", since)
	}
	require.Zero(t, untilMidway(time.Time{}, at(0)), "without a look")
}
