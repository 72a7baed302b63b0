// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestConditionsOfKEDA(t *testing.T) {
	says := func(kind string, status metav1.ConditionStatus, reason, message string) func(*plan.Observed) {
		return func(o *plan.Observed) {
			o.ScaledObject.Status.Conditions = append(o.ScaledObject.Status.Conditions,
				metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message})
		}
	}
	ready := says("Ready", metav1.ConditionTrue, "ScaledObjectReady", "")
	hpaSays := func(status corev1.ConditionStatus, reason, message string) func(*plan.Observed) {
		return func(o *plan.Observed) {
			hpa := plan.Observed{Autoscalers: plan.Autoscalers{Autoscaler: o.KEDAAutoscaler}}
			saying(&hpa, status, reason, message)
		}
	}
	hpa := func(o *plan.Observed) { o.Actuator.Type = v1alpha1.ActuatorHPA }
	leaving := func(o *plan.Observed) {
		o.ScaledObject.DeletionTimestamp = &metav1.Time{Time: noon().Add(-time.Second)}
	}
	stays := func(o *plan.Observed) {
		o.ScaledObject.DeletionTimestamp = &metav1.Time{Time: noon().Add(-2 * time.Minute)}
	}
	left := func(o *plan.Observed) { o.ScaledObject = nil }
	none := func(o *plan.Observed) { o.ScaledObject, o.KEDAAutoscaler = nil, nil }
	at := func(replicas int32) func(*plan.Observed) {
		return func(o *plan.Observed) { o.Target.Replicas = &replicas }
	}
	type changes []func(*plan.Observed)
	const applied, active = v1alpha1.ConditionAutoscalerApplied, v1alpha1.ConditionScalingActive
	tests := map[string]struct {
		given     changes
		condition string
		want      string
		message   string
	}{
		"all is well": {
			changes{ready, hpaSays("True", "ValidMetricFound", "fine")},
			active,
			"True/ValidMetricFound", "fine",
		},
		"all is applied":      {changes{ready}, applied, "True/Applied", "ScaledObject pap-resize-"},
		"its HPA has not run": {changes{ready}, active, "Unknown/Pending", "KEDA has not reconciled"},
		"KEDA has created nothing yet": {
			changes{ready, func(o *plan.Observed) { o.KEDAAutoscaler = nil }},
			active,
			"Unknown/Pending", "KEDA has not created its HorizontalPodAutoscaler yet",
		},
		"KEDA finds fault": {
			changes{says("Ready", metav1.ConditionFalse, "ScaledObjectCheckFailed",
				"no scaler")}, active, "False/ScaledObjectCheckFailed", "KEDA reports for ScaledObject pap-resize-",
		},
		"the HPA gets no metric": {
			changes{
				ready,
				hpaSays("False", "FailedGetExternalMetric", "no metric"),
			}, active, "False/FailedGetExternalMetric", "no metric",
		},
		"KEDA falls back": {
			changes{
				ready, says("Fallback", metav1.ConditionTrue, "FallbackExists", "one trigger"),
				hpaSays("True", "ValidMetricFound", ""),
			},
			active, "False/Fallback", "KEDA gets no answer from the scaler",
		},
		"KEDA is about to remove the last": {
			changes{
				ready, mayBeZero, hpaSays("True", "ValidMetricFound", ""),
				says("Active", metav1.ConditionFalse, "ScalerCooldown", "cooling down"),
			},
			active, "True/ValidMetricFound", "KEDA is about to remove the last replica (ScalerCooldown): cooling down",
		},
		"KEDA is back from zero": {
			changes{ready, hpaSays("False", "ScalingDisabled", "zero")},
			active, "True/Scaling",
			"replicas woke from zero",
		},
		"a user paused it": {
			changes{ready, func(o *plan.Observed) { o.ScaledObject.Paused = true }},
			active,
			"False/ScaledObjectPaused", "remove it to resume",
		},
		"a user paused it at zero": {
			changes{
				mayBeZero, at(0),
				func(o *plan.Observed) { o.ScaledObject.Paused = true },
			}, active, "False/ScaledObjectPaused", "switches scaling off",
		},
		"at zero":      {changes{mayBeZero, at(0)}, active, "True/ScaledToZero", "a backlog wakes replicas"},
		"switched off": {changes{at(0), none}, applied, "True/SwitchedOff", "there is no ScaledObject while replicas are 0"},
		"an old server": {
			changes{func(o *plan.Observed) { o.KEDAAutoscaler.Spec.Behavior = nil }},
			applied, "True/ToleranceUnsupported", "changes of up to 10 %",
		},
		"no decision yet": {
			changes{none, func(o *plan.Observed) { o.Unknown = backlog.ErrUnreachable }},
			applied,
			"Unknown/Pending", "after the first decision",
		},
		"our HPA was deleted now": {changes{none}, applied, "Unknown/Pending", "is deleted"},
		"the one before is leaving": {
			changes{leaving},
			applied, "Unknown/Pending",
			"waiting until KEDA finalizes ScaledObject",
		},
		"its HPA is left": {changes{left}, applied, "Unknown/Pending", "which follows its ScaledObject"},
		"it stays":        {changes{stays}, applied, "False/ScaledObjectStays", "check that KEDA's operator runs"},
		"it stays where the policy only recommends": {
			changes{stays, func(o *plan.Observed) { o.Policy.Spec.Mode = v1alpha1.ModeRecommend }},
			applied, "False/ScaledObjectStays", "check that KEDA's operator runs",
		},
		"it is leaving where the policy only recommends": {
			changes{leaving, func(o *plan.Observed) { o.Policy.Spec.Mode = v1alpha1.ModeRecommend }},
			applied, "Unknown/Pending", "waiting until KEDA finalizes ScaledObject",
		},
		"it stays before an HPA": {changes{stays, hpa}, applied, "False/ScaledObjectStays", "deleted at 11:58:00"},
		"frozen out of bounds": {
			changes{
				none, at(80),
				func(o *plan.Observed) { o.Target.Frozen = &policy.Hold{Message: "a rollout is paused"} },
			}, applied, "Unknown/Pending", "within bounds",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outcome(t, 3)
			byKEDA(t)(&o)
			for _, change := range test.given {
				change(&o)
			}
			c := meta.FindStatusCondition(conditionsOf(nil, o), test.condition)
			require.NotNil(t, c)
			require.Equal(t, test.want, string(c.Status)+"/"+c.Reason, c.Message)
			require.Contains(t, c.Message, test.message)
		})
	}
}
