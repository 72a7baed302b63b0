// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// FuzzQuantity checks, for any number, what a HorizontalPodAutoscaler relies on.
func FuzzQuantity(f *testing.F) {
	for _, seed := range []float64{
		0, math.Copysign(0, -1), -1, 0.4, 0.5, 0.0004, 1, 2.5, 12.3456, 9e12, 9.1e12, 9e15, 9e18, -9e18, math.MaxFloat64,
		math.SmallestNonzeroFloat64, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 53, math.MaxInt64,
	} {
		f.Add(seed, true)
		f.Add(seed, false)
	}
	f.Fuzz(func(t *testing.T, value float64, isRate bool) {
		u, step := whole, 1000.0
		if isRate {
			u, step = perSecond, 1.0
		}
		q, err := quantity(value, u)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			require.Equal(t, response.Unknown, response.ReasonOf(err))
			return
		}
		require.NoError(t, err)
		milli := q.MilliValue()
		require.GreaterOrEqual(t, milli, int64(0))
		require.LessOrEqual(t, milli, int64(9e15))
		require.Zero(t, milli%int64(step))
		wanted := math.Min(math.Max(value, 0), 9e12) * 1000
		require.LessOrEqual(t, math.Abs(float64(milli)-wanted), step/2+1, "served %d thousandths for %g", milli, value)
	})
}
