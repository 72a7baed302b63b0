// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// The API server refuses a whole status if one of its texts is longer than allowed, or a reason is empty.
func TestAStatusFitsItsDefinition(t *testing.T) {
	name, long := strings.Repeat("n", 253), strings.Repeat("because ", 10<<10)
	fits := func(t *testing.T, s v1alpha1.AutoscalingPolicyStatus) {
		t.Helper()
		require.NotEmpty(t, s.Target)
		require.LessOrEqual(t, len(s.Target), 512)
		require.NotEmpty(t, s.Conditions)
		for _, c := range s.Conditions {
			require.LessOrEqual(t, len(c.Message), 32<<10, c.Type)
			require.NotEmpty(t, c.Reason, c.Type)
		}
		if s.Decision != nil {
			require.LessOrEqual(t, len(s.Decision.Equation), 1024)
		}
	}
	for name, change := range map[string]func(*plan.Observed){
		"with the longest names of a function worker": func(o *plan.Observed) {
			o.Policy.Spec.PulsarFunctionRef = v1alpha1.PulsarFunctionRef{
				Kind: v1alpha1.WorkloadFunction, Tenant: name,
				Namespace: name, Name: name,
			}
		},
		"with the longest names of a FunctionMesh": func(o *plan.Observed) {
			o.Policy.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{
				Kind: "FunctionMesh", Name: name, Component: v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: name},
			}
		},
		"with a long text of an admission webhook": func(o *plan.Observed) {
			o.Violation = &plan.Violation{
				Condition: v1alpha1.ConditionAutoscalerApplied, Reason: v1alpha1.ReasonRefused,
				Message: long,
			}
		},
		"with an autoscaler that gives no reason": func(o *plan.Observed) { saying(o, corev1.ConditionTrue, "", long) },
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			change(&o)
			result := &decided{Decision: policy.Decision{Time: noon(), Replicas: 3, Equation: long}}
			fits(t, statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, result))
			o.Policy.Spec.Mode = v1alpha1.ModePaused
			o.Now = noon().Add(time.Minute)
			fits(t, statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, nil))
		})
	}
}

func TestAStatusSaysHowManyReplicasPartitionsAllow(t *testing.T) {
	for name, test := range map[string]struct {
		kind       backlog.SubscriptionType
		partitions int
		want       *int32
	}{
		"Failover has a consumer for each partition": {backlog.Failover, 4, new(int32(4))},
		"Failover with unknown partitions":           {backlog.Failover, 0, nil},
		"Exclusive has one":                          {backlog.Exclusive, 4, new(int32(1))},
		"Shared has no limit":                        {backlog.Shared, 4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			result := &decided{Decision: policy.Decision{Time: noon(), Replicas: 3}, Reading: reading(100, 10)}
			result.Reading.Type, result.Reading.Partitions = test.kind, test.partitions
			status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, outcome(t, 3), result)
			require.Equal(t, test.want, status.Signals.UsefulReplicas)
		})
	}
}
