// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheUnknownStaysUnknown(t *testing.T) {
	for name, q := range map[string]quantity{
		"the zero value":               {},
		"no number":                    of(math.NaN()),
		"infinity":                     of(math.Inf(1)),
		"something over zero":          of(1).over(of(0)),
		"something over the unknown":   of(1).over(quantity{}),
		"the unknown over something":   quantity{}.over(of(1)),
		"something minus the unknown":  of(1).minus(quantity{}),
		"a hundred times the unknown":  quantity{}.percent(),
		"the mean of nothing":          mean(nil),
		"the sum of unknowns":          sum([]quantity{{}, {}}),
		"the geometric mean of a zero": geometric([]quantity{of(0)}),
	} {
		t.Run(name, func(t *testing.T) {
			require.False(t, q.known)
			require.Equal(t, "-", q.text("%.1f"))
			text, err := json.Marshal(q)
			require.NoError(t, err)
			require.Equal(t, "null", string(text))
		})
	}
}

func TestMeansAreOfTheKnown(t *testing.T) {
	values := []quantity{of(1), {}, of(4)}
	require.InDelta(t, 2.5, mean(values).value, 1e-12)
	require.InDelta(t, 5, sum(values).value, 1e-12)
	require.InDelta(t, 2, geometric(values).value, 1e-12)
	require.Equal(t, of(0), mean([]quantity{of(0), of(0)}), "a zero is known")
}

func TestTheIntervalHasTheMeanAndShrinksWithMoreValues(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var values []quantity
	for range 400 {
		values = append(values, of(10+random.NormFloat64()))
	}
	few, many := bootstrap(values[:20], mean, 1), bootstrap(values, mean, 1)
	for _, i := range []interval{few, many} {
		require.Less(t, i.low.value, i.high.value)
		require.True(t, i.below(11) && i.above(9))
	}
	// For normal values the interval is 2 x 1.96 standard errors wide.
	require.InDelta(t, 2*1.96/math.Sqrt(400), many.high.value-many.low.value, 0.05)
	require.Greater(t, few.high.value-few.low.value, 2*(many.high.value-many.low.value))
	require.Equal(t, many, bootstrap(values, mean, 1), "equal seeds give equal intervals")
	require.Equal(t, interval{}, bootstrap(values[:1], mean, 1), "one value tells no interval")
	require.Equal(t, interval{}, bootstrap([]quantity{of(1), {}}, mean, 1), "nor does one that is known")
	require.Equal(t, interval{}, bootstrap(nil, mean, 1))
}
