// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestADecisionIsTimedUntilItsReplicasRun(t *testing.T) {
	type step struct{ desired, running int32 }
	tests := map[string]struct {
		steps []step
		took  []time.Duration
	}{
		"replicas start one by one":    {[]step{{3, 3}, {5, 3}, {5, 4}, {5, 5}, {5, 5}}, []time.Duration{20 * time.Second}},
		"a larger decision replaces":   {[]step{{3, 3}, {5, 3}, {8, 4}, {8, 8}}, []time.Duration{10 * time.Second}},
		"a smaller decision ends it":   {[]step{{3, 3}, {5, 3}, {4, 4}, {4, 4}}, nil},
		"a scale-down is not timed":    {[]step{{5, 5}, {3, 5}, {3, 3}}, nil},
		"replicas that run already":    {[]step{{3, 5}, {5, 5}, {5, 5}}, nil},
		"the first decision of all":    {[]step{{5, 3}, {5, 5}}, nil},
		"two decisions, one after one": {[]step{{1, 1}, {2, 1}, {2, 2}, {3, 2}, {3, 3}}, []time.Duration{1e10, 1e10}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var record *metrics.Record
			var took []time.Duration
			for i, s := range tt.steps {
				o, d, status := busy()
				o.Now = o.Now.Add(time.Duration(i) * 10 * time.Second)
				d.Time, status.DesiredReplicas, status.RunningReplicas = o.Now, &s.desired, &s.running
				record = record.Next(o, d, status, false)
				if elapsed, by, done := record.Actuated(); done {
					require.Equal(t, string(v1alpha1.ActuatorHPA), by)
					took = append(took, elapsed)
				}
			}
			require.Equal(t, tt.took, took)
		})
	}
}

func TestARecommendationIsNotTimed(t *testing.T) {
	o, d, status := busy()
	status.Actuator, status.RunningReplicas = nil, new(int32(3))
	status.DesiredReplicas = new(int32(3))
	before := first(o, d, status)
	status.DesiredReplicas = new(int32(5))
	record := before.Next(o, &policy.Decision{Time: o.Now}, status, false)
	status.RunningReplicas = new(int32(5))
	_, _, done := record.Next(o, d, status, false).Actuated()
	require.False(t, done)
}
