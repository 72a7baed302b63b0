// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func decided(replicas int32, decision v1alpha1.Decision) *v1alpha1.AutoscalingPolicy {
	return &v1alpha1.AutoscalingPolicy{Status: v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: &replicas, Decision: &decision,
	}}
}

func TestNext(t *testing.T) {
	before := sample{at: 10 * time.Second, published: 200, done: 150}
	seen := observation{
		at: 12 * time.Second, published: 500, done: 250, wait: 3 * time.Second, anyDone: true,
		policy: decided(5, v1alpha1.Decision{Equation: "why"}), replicas: stage.Replicas{Spec: 4, Status: 3}, running: 2,
	}
	want := sample{
		at: 12 * time.Second, published: 500, done: 250, in: 150, out: 50, wait: 3 * time.Second, waitKnown: true,
		desired: known(5), current: known(4), running: 2, why: "why",
	}
	require.Equal(t, want, next(before, seen))
	require.Equal(t, int64(250), want.backlog())

	t.Run("values are unknown without the API server", func(t *testing.T) {
		silent := seen
		silent.policy, silent.policyErr = nil, errors.New("reading the policy: timed out")
		silent.replicas, silent.replicasErr = stage.Replicas{}, errors.New("timed out")
		got := next(before, silent)
		require.Equal(t, count{}, got.desired)
		require.Equal(t, count{}, got.current)
		require.Equal(t, "reading the policy: timed out", got.why)
	})
	t.Run("a policy without a decision wants nothing yet", func(t *testing.T) {
		early := seen
		early.policy = &v1alpha1.AutoscalingPolicy{}
		require.Equal(t, count{}, next(before, early).desired)
	})
	t.Run("the backlog is never negative", func(t *testing.T) {
		require.Zero(t, sample{published: 9, done: 10}.backlog())
	})
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
