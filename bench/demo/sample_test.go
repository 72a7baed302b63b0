// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

func decided(replicas int32, decision v1alpha1.Decision) *v1alpha1.AutoscalingPolicy {
	return &v1alpha1.AutoscalingPolicy{Status: v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: &replicas, Decision: &decision,
	}}
}

func TestRatesAndBacklogs(t *testing.T) {
	at := func(seconds float64, published, done int64) sample {
		return sample{Sample: run.Sample{Seconds: seconds, Published: published, Done: &done}}
	}
	require.InDelta(t, 150, at(12, 500, 250).follows(at(10, 200, 150)).in, 0)
	require.Zero(t, at(10, 500, 250).follows(at(10, 200, 150)).in, "in no time")
	require.Equal(t, int64(250), at(12, 500, 250).backlog())
	require.Zero(t, at(12, 9, 10).backlog(), "a replica may report first")
}

func TestASampleHasWhatTheAPIServerSays(t *testing.T) {
	silent := errors.New("reading the policy: timed out")
	got := sample{}.decided(decided(5, v1alpha1.Decision{Equation: "why"}), nil).scaled(3, 4, nil)
	require.Equal(t, 5, *got.DesiredReplicas)
	require.Equal(t, 4, *got.SpecReplicas)
	require.Equal(t, 3, *got.Pods)
	require.Equal(t, "why", got.why)
	require.Empty(t, got.Problem)

	require.Nil(t, sample{}.decided(&v1alpha1.AutoscalingPolicy{}, nil).DesiredReplicas, "nothing is decided yet")

	got = sample{}.decided(nil, silent).scaled(3, 0, silent)
	require.Nil(t, got.DesiredReplicas)
	require.Equal(t, silent.Error(), got.why)
	require.Equal(t, silent.Error(), got.Problem)
	require.Equal(t, 3, *got.SpecReplicas, "nothing changes their number meanwhile")
}

func TestWhy(t *testing.T) {
	const arriving = "150/s arriving / (0.7 x 49.8/s per replica) = 4.31"
	for name, test := range map[string]struct {
		policy *v1alpha1.AutoscalingPolicy
		want   string
	}{
		"shortens the equation": {
			decided(5, v1alpha1.Decision{Equation: arriving}), "150/s / (0.7 x 49.8/s) = 4.31",
		},
		"the equation with a backlog": {
			decided(4, v1alpha1.Decision{Equation: "(150/s arriving + 2000 backlog / 60s) / 49.8/s per replica = 3.68"}),
			"(150/s + 2000/60s) / 49.8/s = 3.68",
		},
		"a bound that changed it": {
			decided(4, v1alpha1.Decision{Equation: arriving, CappedBy: "maxReplicas"}), "150/s / (0.7 x 49.8/s) = 4.31, max",
		},
		"a stabilization window": {
			decided(5, v1alpha1.Decision{
				Equation: arriving,
				Hold: &v1alpha1.Hold{
					Reason: policy.HoldStabilizing, Message: "5 replicas were needed 12s ago, within the stabilization window of 45s",
				},
			}),
			"kept: 5 were needed in the last 45s",
		},
		"a window that grew to the period of the load": {
			decided(5, v1alpha1.Decision{
				Equation: arriving,
				Hold: &v1alpha1.Hold{
					Reason: policy.HoldStabilizing,
					Message: "5 replicas were needed 1m12s ago, within 2m30s: the stabilization window is 45s, but replicas were " +
						"needed again 2m10s after they were last",
				},
			}),
			"kept: 5 were needed in the last 2m30s",
		},
		"replicas that start": {
			decided(5, v1alpha1.Decision{
				Equation: arriving,
				Hold:     &v1alpha1.Hold{Reason: policy.HoldStabilizing, Message: "replicas have been starting for 8s"},
			}),
			"kept: replicas are starting",
		},
		"replicas that another manager wrote": {
			decided(5, v1alpha1.Decision{
				Equation: arriving,
				Hold: &v1alpha1.Hold{
					Reason:  policy.HoldStabilizing,
					Message: "5 replicas were written by kubectl 12s ago, and are kept for the stabilization window of 45s",
				},
			}),
			"kept: 5 replicas were written by kubectl 12s ago",
		},
		"a capacity that is not known": {
			decided(1, v1alpha1.Decision{Hold: &v1alpha1.Hold{Reason: policy.HoldLearning, Message: "long"}}),
			"measuring the capacity of a replica",
		},
		"shows the message of any other hold": {
			decided(1, v1alpha1.Decision{Hold: &v1alpha1.Hold{Reason: policy.HoldUnknown, Message: "connection refused"}}),
			"BacklogUnknown: connection refused",
		},
		"shows what prevents a decision": {
			&v1alpha1.AutoscalingPolicy{Status: v1alpha1.AutoscalingPolicyStatus{Conditions: []metav1.Condition{
				{Type: v1alpha1.ConditionReady, Message: "Function x does not exist"},
			}}}, "Function x does not exist",
		},
		"nothing yet": {&v1alpha1.AutoscalingPolicy{}, "no decision yet"},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, why(test.policy, nil)) })
	}
}
