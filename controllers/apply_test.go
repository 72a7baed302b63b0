// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestRecommendChangesNothing(t *testing.T) {
	p := fixture.Policy()
	p.Spec.Mode = v1alpha1.ModeRecommend
	w := newTestWorld(t, fixture.Function(), p, fixture.ConfigMap(),
		otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize"))
	w.reconcile()
	w.answer(700, 10_000)
	require.Equal(t, []string{"patch status"}, w.reconcile(), "beside another autoscaler, which is what the mode is for")
	require.Nil(t, w.autoscaler())
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas)
	status, _ := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Recommending", status)
}

func TestAChangeToRecommendRemovesOurAutoscalerOnly(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
	require.Equal(t, []string{"delete " + plan.AutoscalerName("resize"), "patch status"}, w.reconcile())
	require.Nil(t, w.autoscaler())

	taken := otherAutoscaler("apps/v1", "Deployment", "web")
	taken.Name = plan.AutoscalerName("resize")
	require.NoError(t, w.client.Create(t.Context(), taken))
	require.Empty(t, w.reconcile())
	require.NotNil(t, w.autoscaler())
}

func TestARivalThatAppearsLaterFreezesWhatRuns(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	w.events()
	require.NoError(t, w.client.Create(t.Context(), otherAutoscaler("apps/v1", "StatefulSet", "resize-function")))
	require.Equal(t, []string{"patch status"}, w.reconcile())
	require.NotNil(t, w.autoscaler(), "with both in place Kubernetes stops both")
	require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas, "what we would do is still shown")
	events := w.events()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Warning ConflictingAutoscaler")
}

func TestATargetThatJoinsAMeshIsLetGo(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	function := cluster.NewUnstructured(cluster.KindFunction)
	require.NoError(t, w.client.Get(t.Context(), fixture.Key(), function))
	yes := true
	function.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "photos", UID: "mesh", Controller: &yes,
	}})
	require.NoError(t, w.client.Update(t.Context(), function))
	require.Equal(t, []string{"patch status"}, w.reconcile())
	require.Nil(t, w.policy().Status.DesiredReplicas, "a number that is served would fight the mesh at every sync")
	require.Zero(t, w.metric("pulsar_autoscaler_policy_desired_replicas"))
}

func TestAnApplyThatIsTurnedDownBecomesACondition(t *testing.T) {
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
			w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
			w.applyFails = test.err
			w.settle(700)
			status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.reason, status)
			require.Contains(t, message, test.message)
			require.Empty(t, w.reconcile(), "it is not tried again at once")
			require.NotEmpty(t, w.events())

			w.after(time.Minute)
			w.answer(700, 10_000)
			w.applyFails = nil
			require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
			status, _ = w.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, "True/Applied", status)
		})
	}
}
