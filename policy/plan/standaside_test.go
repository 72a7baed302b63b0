// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestRecommendIgnoresOtherAutoscalers(t *testing.T) {
	w := world()
	w.Target.OwnAutoscaler = true
	w.OlderPolicy = "first"
	w.Conflicting = []plan.ConflictingAutoscaler{{
		Kind: "HorizontalPodAutoscaler", Name: "theirs", TargetKind: "Function",
		TargetName: "resize",
	}}
	require.NotNil(t, plan.Check(w))
	w.Policy.Spec.Mode = v1alpha1.ModeRecommend
	require.Nil(t, plan.Check(w))
	w.Target.MeshOwner = "photos"
	require.NotNil(t, plan.Check(w), "violations of the target itself count in every mode")
}

func TestATargetThatCannotBeScaledHasNoDesiredReplicas(t *testing.T) {
	w := world()
	desired := int32(7)
	before := v1alpha1.AutoscalingPolicyStatus{
		DesiredReplicas: &desired, Signals: &v1alpha1.Signals{}, Decision: &v1alpha1.Decision{},
		Capacity: &v1alpha1.Capacity{Observations: 3},
	}
	tests := map[string]struct {
		condition string
		kept      bool
	}{
		"no decision for a target in a mesh":                  {v1alpha1.ConditionTargetFound, false},
		"a conflicting autoscaler does not end the decisions": {v1alpha1.ConditionAutoscalerApplied, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w.Violation = &plan.Violation{Condition: test.condition, Reason: "Why", Message: "why"}
			after := statusOf(before, w, nil)
			require.Equal(t, test.kept, after.DesiredReplicas != nil)
			require.Equal(t, test.kept, after.Signals != nil)
			require.Equal(t, test.kept, after.Decision != nil)
			require.NotNil(t, after.Capacity, "the learned state stays")
		})
	}
}

func TestAMissingAutoscalerIsNotReportedAsApplied(t *testing.T) {
	w := world()
	w.Autoscaler = nil
	w.Unknown = backlog.ErrNoData
	applied := meta.FindStatusCondition(conditionsOf(nil, w), v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, metav1.ConditionUnknown, applied.Status)
	require.Equal(t, v1alpha1.ReasonPending, applied.Reason)
}
