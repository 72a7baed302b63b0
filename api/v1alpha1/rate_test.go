// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

func TestRatesAreWrittenAsPeopleWriteThem(t *testing.T) {
	tests := map[string]struct {
		perSecond float64
		want      string
	}{
		"zero":                           {0, "0"},
		"negative becomes zero":          {-3, "0"},
		"below a thousandth":             {0.0004, "0"},
		"one in twenty seconds":          {0.04732, "0.047"},
		"less than one":                  {0.4732, "0.473"},
		"a few with two decimals":        {4.7316, "4.73"},
		"whole numbers have no decimals": {4, "4"},
		"tens with one decimal":          {47.316, "47.3"},
		"just below ten":                 {9.9996, "10"},
		"hundreds as whole numbers":      {473.16, "473"},
		"thousands with all digits":      {4731.6, "4732"},
		"a million without a suffix":     {1e6, "1000000"},
		"above the largest rate":         {1e15, "1000000000000"},
		"infinity":                       {math.Inf(1), "1000000000000"},
		"a repeating binary fraction":    {0.1 + 0.2, "0.3"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rate := v1alpha1.NewRate(test.perSecond)
			require.Equal(t, test.want, rate.String())
			text, err := json.Marshal(rate)
			require.NoError(t, err)
			require.Equal(t, `"`+test.want+`"`, string(text))
			var read v1alpha1.Rate
			require.NoError(t, json.Unmarshal(text, &read))
			require.True(t, equality.Semantic.DeepEqual(rate, read))
			require.Equal(t, test.want, read.String(), "written unchanged")
		})
	}
}

// TestRatesReadQuantities: earlier versions wrote them to statuses.
func TestRatesReadQuantities(t *testing.T) {
	for text, want := range map[string]string{`"47316m"`: "47.316", `"12k"`: "12000", `5`: "5", `"1e3"`: "1000"} {
		var read v1alpha1.Rate
		require.NoError(t, json.Unmarshal([]byte(text), &read))
		require.Equal(t, want, read.String())
	}
	var read v1alpha1.Rate
	require.Error(t, json.Unmarshal([]byte(`"many"`), &read))
}

// TestRatesKeepThreeDigits: the rounding error is less than half a percent, or half a thousandth.
func TestRatesKeepThreeDigits(t *testing.T) {
	for rate := 1e-3; rate < 1e12; rate *= 1.037 {
		rounded := v1alpha1.NewRate(rate)
		require.InDelta(t, rate, rounded.AsApproximateFloat64(), max(rate*0.005, 0.000501), "%v", rate)
	}
}
