// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func TestTheWindowCoversThePeriodOfTheLoad(t *testing.T) {
	tests := map[string]struct {
		lately []policy.ReplicasAt
		before policy.Recurrence
		window int32
		rise   float64
		want   time.Duration
	}{
		"no earlier need": {window: 45},
		"the same number was needed": {
			lately: []policy.ReplicasAt{{At: ago(100 * time.Second), Replicas: 9}}, window: 45, want: 100 * time.Second,
		},
		"the last time counts": {
			lately: []policy.ReplicasAt{
				{At: ago(200 * time.Second), Replicas: 12},
				{At: ago(100 * time.Second), Replicas: 9},
				{At: ago(50 * time.Second), Replicas: 6},
			}, window: 45, want: 100 * time.Second,
		},
		"fewer were needed": {lately: []policy.ReplicasAt{{At: ago(100 * time.Second), Replicas: 6}}, window: 45},
		"that was long ago": {lately: []policy.ReplicasAt{{At: ago(300 * time.Second), Replicas: 9}}, window: 45},
		"a short window":    {lately: []policy.ReplicasAt{{At: ago(100 * time.Second), Replicas: 9}}, window: 10},
		"no window":         {lately: []policy.ReplicasAt{{At: ago(time.Second), Replicas: 9}}},
		"the load did not change": {
			lately: []policy.ReplicasAt{{At: ago(100 * time.Second), Replicas: 9}}, window: 45, rise: 1.1,
		},
		"a long period stays": {
			lately: []policy.ReplicasAt{{At: ago(100 * time.Second), Replicas: 9}}, window: 45, want: 200 * time.Second,
			before: policy.Recurrence{At: ago(39 * time.Minute), After: 200 * time.Second},
		},
		"an old period is forgotten": {
			lately: []policy.ReplicasAt{{At: ago(100 * time.Second), Replicas: 9}}, window: 45, want: 100 * time.Second,
			before: policy.Recurrence{At: ago(40 * time.Minute), After: 200 * time.Second},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			in, state := wanting(700, 0)
			in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{
				StabilizationWindowSeconds: &test.window,
			}}
			state.Arrivals.Past = []policy.RateAt{{At: ago(50 * time.Second), Rate: 700 / cmp.Or(test.rise, 1.5)}}
			state.Recommendations, state.Recurrence = test.lately, test.before
			decision, after := policy.Decide(in, state)
			require.Equal(t, int32(9), decision.Replicas, decision.Equation)
			if test.want == 0 {
				require.Zero(t, after.Recurrence)
				return
			}
			require.Equal(t, policy.Recurrence{At: in.Now, After: test.want}, after.Recurrence)
		})
	}
}

func TestALongerWindowIsExplained(t *testing.T) {
	in, state := wanting(90, 0)
	state.Recommendations = []policy.ReplicasAt{{At: ago(80 * time.Second), Replicas: 4}}
	state.Recurrence = policy.Recurrence{At: ago(5 * time.Minute), After: 100 * time.Second}
	decision, _ := policy.Decide(in, state)
	require.Equal(t, &policy.Hold{
		Reason: policy.HoldStabilizing,
		Message: "4 replicas were needed 1m20s ago, within 1m50s: the stabilization window is 45s, but replicas were needed " +
			"again 1m40s after they were last",
	}, decision.Hold)
}
