// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestRecommendChangesNothing(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Mode = v1alpha1.ModeRecommend
	env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap(),
		otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize"))
	env.reconcile()
	env.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, env.reconcile(), "another autoscaler does not conflict with mode Recommend")
	require.Nil(t, env.autoscaler())
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Recommending", status)
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/ConflictingAutoscaler", status)
	require.Contains(t, message, "in mode Auto the policy would not scale: HorizontalPodAutoscaler ")
}

func TestAChangeToRecommendRemovesOurAutoscalerOnly(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	require.Equal(t, []string{"delete " + plan.AutoscalerName("resize"), "patch status"}, env.reconcile())
	require.Nil(t, env.autoscaler())

	taken := otherAutoscaler("apps/v1", "Deployment", "web")
	taken.Name = plan.AutoscalerName("resize")
	require.NoError(t, env.client.Create(t.Context(), taken))
	require.Equal(t, []string{"patch status"}, env.reconcile(), "it reports what mode Auto would find")
	require.NotNil(t, env.autoscaler())
	status, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/AutoscalerNameTaken", status)
	require.Empty(t, env.reconcile())
}

func TestALaterConflictFreezesReplicas(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	env.events()
	require.NoError(t, env.client.Create(t.Context(), otherAutoscaler("apps/v1", "StatefulSet", "resize-function")))
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.NotNil(t, env.autoscaler(), "with both in place Kubernetes stops both")
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas, "what we would do is still shown")
	events := env.events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Warning ConflictingAutoscaler")
}

func TestATargetThatJoinsAMeshIsReleased(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	function := cluster.NewUnstructured(cluster.KindFunction)
	require.NoError(t, env.client.Get(t.Context(), fixture.Key(), function))
	yes := true
	function.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "photos", UID: "mesh", Controller: &yes,
	}})
	require.NoError(t, env.client.Update(t.Context(), function))
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.Nil(t, env.policy().Status.DesiredReplicas, "a number that is served would fight the mesh at every sync")
	require.Zero(t, env.metric("pulsar_autoscaler_policy_desired_replicas"))
}

func TestARefusedApplyBecomesACondition(t *testing.T) {
	conflict := apierrors.NewConflict(autoscalingv2.Resource("horizontalpodautoscalers"), "x",
		fmt.Errorf("conflict with %q: .spec.maxReplicas", "argocd"))
	conflict.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type:    metav1.CauseTypeFieldManagerConflict,
		Message: `conflict with "argocd"`, Field: ".spec.maxReplicas",
	}}
	tests := map[string]struct {
		err             error
		reason, message string
	}{
		"another manager owns a field": {conflict, "False/FieldConflict", `"argocd"`},
		"permission is missing": {
			apierrors.NewForbidden(autoscalingv2.Resource("horizontalpodautoscalers"), "x",
				fmt.Errorf("needs patch")), "False/ApplyRefused", "needs patch",
		},
		"the object is invalid": {
			apierrors.NewInvalid(autoscalingv2.SchemeGroupVersion.WithKind("HorizontalPodAutoscaler").GroupKind(), "x",
				nil), "False/ApplyRefused", "is invalid",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
			env.applyFails = test.err
			env.firstDecision(700)
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.reason, status)
			require.Contains(t, message, test.message)
			require.Empty(t, env.reconcile(), "it is not tried again at once")
			require.NotEmpty(t, env.events())

			env.after(time.Minute)
			env.answer(700, 10_000)
			env.applyFails = nil
			require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
			status, _ = env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, "True/Applied", status)
		})
	}
}

func TestARefusedApplyAtZeroIsReportedOnce(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorKEDA} {
		t.Run(string(actuator), func(t *testing.T) {
			env := newKEDAEnv(t, idleFunction(), idlePolicy(actuator))
			env.applyFails = apierrors.NewForbidden(autoscalingv2.Resource("any"), "x", fmt.Errorf("exceeded quota"))
			env.reconcile()
			env.answer(500, 10_000)
			env.reconcile()
			require.Contains(t, env.writes, "apply")
			env.events()
			refused, retries := env.now, 0
			for range 20 {
				if slices.Contains(env.goOn(500), "apply") {
					retries++
				}
			}
			require.Equal(t, 5, retries)
			applied := meta.FindStatusCondition(env.policy().Status.Conditions, v1alpha1.ConditionAutoscalerApplied)
			require.True(t, applied.LastTransitionTime.Time.Equal(refused.Truncate(time.Second)))
			require.Equal(t, []string{
				"Warning ApplyRefused messages wait longer than the latency objective: see condition Ready",
			}, env.events())
			require.Empty(t, env.written)
			status, message := env.condition(v1alpha1.ConditionStalled)
			require.Equal(t, "True/ApplyRefused", status)
			require.Contains(t, message, "exceeded quota")

			env.applyFails = nil
			env.after(time.Minute)
			env.goOn(500)
			env.goOn(500)
			require.NotEmpty(t, env.written)
			status, message = env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, "True/Applied", status, message)
		})
	}
}
