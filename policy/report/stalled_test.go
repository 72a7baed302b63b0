// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// stalledBy is the reason of condition Stalled; empty while that is absent.
func stalledBy(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled); c != nil {
		return string(c.Status) + "/" + c.Reason
	}
	return ""
}

func TestStalledIsWhatOnlyAUserCanEnd(t *testing.T) {
	violates := func(condition, reason string) func(*plan.Observed) {
		return func(o *plan.Observed) {
			o.Violation = &plan.Violation{Condition: condition, Reason: reason, Message: "fix it"}
		}
	}
	const target, applied = v1alpha1.ConditionTargetFound, v1alpha1.ConditionAutoscalerApplied
	for name, test := range map[string]struct {
		given func(*plan.Observed)
		want  string
	}{
		"nothing is wrong":          {func(*plan.Observed) {}, ""},
		"the target is missing":     {violates(target, v1alpha1.ReasonTargetNotFound), "True/TargetNotFound"},
		"a mesh sets the replicas":  {violates(target, v1alpha1.ReasonOwnedByFunctionMesh), "True/OwnedByFunctionMesh"},
		"another autoscaler scales": {violates(applied, v1alpha1.ReasonConflictingAutoscaler), "True/ConflictingAutoscaler"},
		"KEDA is not installed":     {violates(applied, v1alpha1.ReasonKEDAMissing), "True/KEDAMissing"},
		"it is being suspended":     {violates(applied, v1alpha1.ReasonTakingOver), ""},
		"suspending is retried":     {violates(applied, v1alpha1.ReasonTakeOverFailed), ""},
		"it is being restored":      {violates(applied, v1alpha1.ReasonRestoring), ""},
		"KEDA has to finalize":      {violates(applied, v1alpha1.ReasonScaledObjectStays), ""},
		"the worker does not reply": {violates(target, v1alpha1.ReasonPulsarUnreachable), ""},
		"Pulsar does not reply":     {func(o *plan.Observed) { o.Unknown = backlog.ErrUnreachable }, ""},
		"a topic does not exist":    {func(o *plan.Observed) { o.Unknown = backlog.ErrTopicNotFound }, ""},
		"the mode is Paused": {func(o *plan.Observed) {
			violates(target, v1alpha1.ReasonTargetNotFound)(o)
			o.Policy.Spec.Mode = v1alpha1.ModePaused
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			test.given(&o)
			status := statusOf(v1alpha1.AutoscalingPolicyStatus{}, o, nil)
			require.Empty(t, stalledBy(status.Conditions), "it may be on its way")
			o.Now = o.Now.Add(59 * time.Second)
			status = statusOf(status, o, nil)
			require.Empty(t, stalledBy(status.Conditions))
			o.Now = o.Now.Add(time.Second)
			status = statusOf(status, o, nil)
			require.Equal(t, test.want, stalledBy(status.Conditions))
			require.Equal(t, v1alpha1.ConditionReady, status.Conditions[0].Type, "Ready comes first")

			o.Violation = nil
			require.Empty(t, stalledBy(statusOf(status, o, nil).Conditions), "it is absent afterwards")
		})
	}
}
