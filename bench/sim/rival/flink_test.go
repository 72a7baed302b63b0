// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// By the formulas and the defaults of flink-kubernetes-operator's ScalingMetricEvaluator and JobVertexScaler: bounds of
// the utilization 0.4 and 1 around 0.7, catch-up in 30 min, a restart of 5 min. Ten replicas process 50/s each in these
// cases.
func TestTheFlinkModelFollowsItsFormulas(t *testing.T) {
	tests := map[string]struct {
		arrivals, processed, busy, lag float64
		want                           int
	}{
		"within the bounds nothing changes": {400, 400, 8, 0, 10},
		// (520/0.7 + 520/6) / 50 = 16.6
		"beyond the upper bound it sizes for the target": {520, 500, 10, 0, 17},
		// (100/0.7 + 100/6) / 50 = 3.2, but 60 % less at most
		"below the lower bound too": {100, 100, 2, 0, 4},
		// (140000/1800 + 450/6 + 450/0.7) / 50 = 15.9
		"catches up with a backlog":                      {450, 500, 10, 140_000, 16},
		"with a lag the processing rate is the capacity": {450, 500, 5, 140_000, 16},
		"while it catches up no utilisation is too low":  {100, 500, 10, 160_000, 10},
		"nor when nothing arrives any more":              {0, 500, 10, 200_000, 10},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := calm()
			s.Initial = 10
			f := flink{settings: defaultFlink(), seen: []observed{{tt.arrivals, tt.processed, tt.busy}}}
			got, ok := f.want(model.New(s, 1), model.Rough{Entries: tt.lag, Consuming: 10})
			require.True(t, ok)
			require.Equal(t, tt.want, got)
		})
	}
}
