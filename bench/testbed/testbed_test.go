// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

func at(seconds int) time.Time { return time.Unix(1_700_000_000+int64(seconds), 0) }

func TestBetweenBeginsWithTheStateThen(t *testing.T) {
	timeline := []pods.Sample{
		{Time: at(-5), Desired: 1}, {Time: at(0), Desired: 2}, {Time: at(4), Desired: 3}, {Time: at(10), Desired: 9},
	}
	require.Equal(t, []pods.Sample{{Time: at(0), Desired: 2}, {Time: at(4), Desired: 3}}, Between(timeline, at(0), at(10)))
	require.Equal(t, []pods.Sample{{Time: at(0)}}, Between(nil, at(0), at(10)), "there is always a state")
}

func TestUsageOfIsPaidPerReplica(t *testing.T) {
	lived := []pods.Sample{
		{Time: at(0), Desired: 1, Started: 1},
		{Time: at(10), Desired: 4, Started: 1},
		{Time: at(12), Desired: 4, Started: 4},
		{Time: at(20), Desired: 2, Started: 4},
	}
	require.Equal(t, Usage{Paid: (12 + 8*4 + 10*4) * time.Second, Changes: 2, Most: 4}, UsageOf(lived, at(30)))
}

func TestLoadAverageIsTheFirstNumber(t *testing.T) {
	load, err := parseLoadAverage("0.33 0.70 1.09 2/345 12345\n")
	require.NoError(t, err)
	require.InDelta(t, 0.33, load, 0)
	for _, wrong := range []string{"", "a lot", "-1 0 0", "NaN 0 0", "+Inf 0 0", "1e9 0 0"} {
		_, err := parseLoadAverage(wrong)
		require.ErrorIs(t, err, errLoadAverage, wrong)
	}
}

func FuzzLoadAverage(f *testing.F) {
	f.Add("0.33 0.70 1.09 2/345 12345\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		load, err := parseLoadAverage(text)
		if err == nil && !(load >= 0 && load < 1e6) {
			t.Fatalf("%q is %g", text, load)
		}
	})
}
