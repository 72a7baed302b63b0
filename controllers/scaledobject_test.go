// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const kedaFinalizer = "finalizer.keda.sh"

// kedaWorld is a cluster with KEDA, whose scaler the adapter knows.
func kedaWorld(t *testing.T, objects ...client.Object) *testWorld {
	t.Helper()
	w := newTestWorld(t, append(objects, fixture.ConfigMap())...)
	w.now = time.Now() // as the API server's, which says when something was deleted
	w.abilities = plan.Capabilities{KEDA: true, Scaler: plan.Scaler{Address: "scaler.pulsar-autoscaler.svc:9090"}}
	return w
}

func kedaPolicy() *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	return p
}

// scaledObject returns ours, or nil.
func (w *testWorld) scaledObject() *unstructured.Unstructured {
	w.t.Helper()
	object := cluster.NewUnstructured(cluster.KindScaledObject)
	err := w.client.Get(w.t.Context(),
		types.NamespacedName{Namespace: fixture.Namespace, Name: plan.AutoscalerName("resize")}, object)
	require.NoError(w.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return object
}

// kedaRuns does what KEDA's operator and the garbage collector do of our ScaledObject.
func (w *testWorld) kedaRuns() {
	w.t.Helper()
	w.kedaWorks()
	w.collectsGarbage()
}

func (w *testWorld) kedaWorks() {
	w.t.Helper()
	object := w.scaledObject()
	switch {
	case object == nil:
	case object.GetDeletionTimestamp() != nil:
		object.SetFinalizers(nil)
		require.NoError(w.t, w.client.Update(w.t.Context(), object))
	default:
		object.SetFinalizers([]string{kedaFinalizer})
		labels := object.GetLabels()
		labels["scaledobject.keda.sh/name"] = object.GetName()
		object.SetLabels(labels)
		unstructured.RemoveNestedField(object.Object, "spec", "advanced", "restoreToOriginalReplicaCount") // omitempty
		w.kedaSays(object,
			map[string]any{
				"type": "Ready", "status": "True", "reason": "ScaledObjectReady",
				"message": "ScaledObject is defined correctly and is ready for scaling",
			})
		if w.autoscaler() == nil {
			require.NoError(w.t, w.client.Create(w.t.Context(), autoscalerOfKEDA(object)))
		}
	}
}

// kedaSays sets KEDA's conditions.
func (w *testWorld) kedaSays(object *unstructured.Unstructured, conditions ...any) {
	w.t.Helper()
	require.NoError(w.t, unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"))
	require.NoError(w.t, w.client.Update(w.t.Context(), object))
}

// autoscalerOfKEDA is what KEDA makes of a ScaledObject.
func autoscalerOfKEDA(object *unstructured.Unstructured) *autoscalingv2.HorizontalPodAutoscaler {
	ref := target.ScaleTargetOf(object)
	owner := metav1.OwnerReference{
		APIVersion: "keda.sh/v1alpha1", Kind: cluster.KindScaledObject, Name: object.GetName(), UID: object.GetUID(),
		Controller: new(true),
	}
	tolerant := &autoscalingv2.HPAScalingRules{Tolerance: resource.NewQuantity(0, resource.DecimalSI)}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fixture.Namespace, Name: object.GetName(),
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: ref.APIVersion, Kind: ref.Kind,
				Name: ref.Name,
			}, MaxReplicas: 20,
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: tolerant, ScaleDown: tolerant},
		},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{
			Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound",
			Message: "the HPA was able to calculate",
		}}},
	}
}

// collectsGarbage takes away KEDA's HorizontalPodAutoscaler after its ScaledObject.
func (w *testWorld) collectsGarbage() {
	w.t.Helper()
	if hpa := w.autoscaler(); hpa != nil && target.ControllerOf(hpa) == cluster.KindScaledObject+" "+hpa.Name &&
		w.scaledObject() == nil {
		require.NoError(w.t, w.client.Delete(w.t.Context(), hpa))
	}
}

func TestAScaledObjectIsWrittenOnceAndKept(t *testing.T) {
	w := kedaWorld(t, fixture.Function(), kedaPolicy())
	require.NotContains(t, w.reconcile(), "apply", "there is nothing to serve yet")
	w.answer(700, 10_000)
	require.Equal(t, []string{"patch status", "apply", "patch status"}, w.reconcile(),
		"the scaler knows the decision before KEDA asks")
	object := w.scaledObject()
	require.NotNil(t, object)
	require.Equal(t, "AutoscalingPolicy resize", target.ControllerOf(object))
	ref := target.ScaleTargetOf(object)
	require.Equal(
		t,
		v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1",
			Kind:       cluster.KindFunction,
			Name:       "resize",
		},
		*ref,
	)
	require.Empty(t, w.reconcile())
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, message)

	w.kedaRuns()
	require.Equal(t, []string{"patch status"}, w.reconcile())
	status, message = w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)
	_, message = w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "ScaledObject "+object.GetName()+" is as it should be", message)
	require.Equal(t, object.GetName(), w.policy().Status.ScaledObject)
	require.Empty(t, w.policy().Status.HorizontalPodAutoscaler)
	require.Equal(t, &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorKEDA, Reason: "spec.actuator says so"},
		w.policy().Status.Actuator)
	require.Empty(t, w.reconcile(), "what KEDA writes of it is no difference")
	require.Empty(t, w.written, "KEDA writes the replicas")

	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 30 })
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	require.Equal(t, int64(30), fixture.Spec(w.scaledObject())["maxReplicaCount"])
	require.Empty(t, w.reconcile())
}

func TestKEDAsRefusalBecomesACondition(t *testing.T) {
	w := kedaWorld(t, fixture.Function(), kedaPolicy())
	w.reconcile()
	w.answer(700, 10_000)
	w.applyFails = apierrors.NewForbidden(
		schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"},
		"resize",
		errors.New(
			`admission webhook "vscaledobject.kb.io" denied the request: the workload 'resize' is already managed by the hpa 'x'`,
		),
	)
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ApplyRefused", status)
	require.Contains(t, message, "already managed by the hpa 'x'")
	require.Empty(t, w.reconcile(), "it is not asked again and again")
	w.applyFails = nil
	w.after(2 * time.Minute)
	w.answer(700, 10_000)
	require.Contains(t, w.reconcile(), "apply")
}

// TestAWebhookThatLagsIsAskedAgainAtOnce: KEDA's sees deletions by a watch of its own.
func TestAWebhookThatLagsIsAskedAgainAtOnce(t *testing.T) {
	w := kedaWorld(t, fixture.Function(), fixture.Policy())
	w.settle(700)
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorKEDA })
	w.reconcile()
	w.applyFails = apierrors.NewForbidden(schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"}, "resize",
		errors.New("already managed by the hpa"))
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "already managed by the hpa")
	status, _ := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "Unknown/ApplyFailed", status)
	w.applyFails = nil
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
}

func TestTheActuatorIsHandedOver(t *testing.T) {
	w := kedaWorld(t, fixture.Function(), fixture.Policy())
	w.settle(700)
	hpa := w.autoscaler()
	require.NotNil(t, hpa)

	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorKEDA })
	require.Equal(t, []string{"delete " + hpa.Name, "patch status"}, w.reconcile())
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, message)
	require.Equal(t, []string{"patch status", "apply", "patch status"}[1:], w.reconcile())
	w.kedaRuns()
	w.reconcile()
	status, message = w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)

	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorKEDA })
		for range 4 {
			w.kedaRuns()
			w.reconcile()
		}
		require.NotNil(t, w.scaledObject())
		w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = actuator })
		require.Equal(t, []string{"delete " + hpa.Name, "patch status"}, w.reconcile())
		_, message = w.condition(v1alpha1.ConditionReady)
		require.Equal(t, "waiting until KEDA has let ScaledObject "+hpa.Name+" go", message)
		require.Empty(t, w.reconcile(), "KEDA holds it back")
		w.kedaWorks()
		require.Nil(t, w.scaledObject())
		require.Equal(t, []string{"patch status"}, w.reconcile(), "its HorizontalPodAutoscaler is still there")
		_, message = w.condition(v1alpha1.ConditionReady)
		require.Contains(t, message, "is gone, which KEDA made")
		w.collectsGarbage()
		want := "apply"
		if actuator == v1alpha1.ActuatorDirect {
			want = "scale 7"
		}
		require.Equal(t, []string{want, "patch status"}, w.reconcile())
		w.byHand(3)
	}
}

func TestAScaledObjectThatStaysIsToldOf(t *testing.T) {
	w := kedaWorld(t, fixture.Function(), kedaPolicy())
	w.settle(700)
	w.kedaRuns()
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorHPA })
	w.reconcile()
	w.after(2 * time.Minute)
	w.answer(700, 10_000)
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScaledObjectStays", status)
	require.Contains(t, message,
		"see that KEDA's operator runs, which lets it go, or if KEDA is gone remove finalizer finalizer.keda.sh of it")
	require.NotNil(t, w.autoscaler())
	w.kedaRuns()
	require.Contains(t, w.reconcile(), "apply")
	require.Equal(t, "AutoscalingPolicy resize", target.ControllerOf(w.autoscaler()))
}

// passes until the world stands still, each with what KEDA does meanwhile; a process that has ended is followed by
// another.
func (w *testWorld) kedaPasses(times int) {
	w.t.Helper()
	for range times {
		w.passing = true
		_, err := w.reconciler.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		w.passing = false
		if w.crashed {
			w.crashed, w.crashAt = false, 0
			w.restart()
			w.answer(700, 10_000)
		} else {
			require.NoError(w.t, err)
		}
		require.Falsef(w.t, w.twoScale(), "two autoscalers at once after %v", w.writes)
		w.kedaRuns()
	}
}

// twoScale says that our HorizontalPodAutoscaler stands beside a ScaledObject that is not going.
func (w *testWorld) twoScale() bool {
	hpa := w.autoscaler()
	return hpa != nil && target.ControllerOf(hpa) == "AutoscalingPolicy resize" && w.scaledObject() != nil
}

func TestReplicasStayWhereTheyAreAtWhateverWriteATransferEnds(t *testing.T) {
	type step struct{ from, to v1alpha1.Actuator }
	for _, s := range []step{
		{v1alpha1.ActuatorHPA, v1alpha1.ActuatorKEDA},
		{v1alpha1.ActuatorKEDA, v1alpha1.ActuatorHPA},
		{v1alpha1.ActuatorKEDA, v1alpha1.ActuatorDirect},
		{v1alpha1.ActuatorDirect, v1alpha1.ActuatorKEDA},
	} {
		for _, arrives := range []bool{false, true} {
			for at := range 6 {
				t.Run(string(s.from)+" to "+string(s.to), func(t *testing.T) {
					p := fixture.Policy()
					p.Spec.Actuator = s.from
					function := fixture.Function()
					fixture.Spec(function)["replicas"] = int64(7) // what is decided
					w := kedaWorld(t, function, p)
					w.settle(700)
					w.kedaPasses(3)
					w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = s.to })
					w.crashAt, w.arrives = at, arrives
					w.kedaPasses(8)
					require.Empty(t, w.written)
					require.Equal(t, int64(7), w.replicas())
					status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
					require.Contains(t, status, "True/", message)
					require.Equal(t, s.to, w.policy().Status.Actuator.Type)
					require.Equal(t, s.to == v1alpha1.ActuatorKEDA, w.scaledObject() != nil)
				})
			}
		}
	}
}
