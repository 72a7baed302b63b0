// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestATargetFrozenOutOfBoundsExplainsItsMissingAutoscaler(t *testing.T) {
	for name, test := range map[string]struct {
		current int32
		want    string
	}{
		"out of bounds": {80, "Unknown/Pending"},
		"within":        {3, "True/Applied"},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, test.current)
			o.Target.Frozen = &policy.Hold{Reason: policy.HoldRolloutPaused, Message: "a rollout is paused"}
			if plan.New(o, &policy.Decision{Replicas: test.current}).RemoveAutoscaler {
				o.Autoscaler = nil
			}
			status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, nil)
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, string(c.Status)+"/"+c.Reason)
			if test.current > 3 {
				require.Contains(t, c.Message, "a rollout is paused")
				require.Empty(t, status.HorizontalPodAutoscaler)
			}
		})
	}
}
