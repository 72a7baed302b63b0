// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitsHaveNoDigitsThatSayNothing(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.04: "0s", 1.26: "1.2s", 9.9: "9.9s", 10.4: "10s",
		205.5: "3m26s", 1e12: "277777h46m40s",
	} {
		require.Equal(t, want, roundedWait(seconds).String())
	}
	require.Equal(t, 10*time.Second, roundedWait(10))
}
