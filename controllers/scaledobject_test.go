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

// newKEDAEnv is a cluster with KEDA and an external scaler.
func newKEDAEnv(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	env := newTestEnv(t, append(objects, fixture.ConfigMap())...)
	env.now = time.Now() // like the API server's, which sets deletion times
	env.capabilities = plan.Capabilities{KEDA: true, Scaler: plan.Scaler{Address: "scaler.pulsar-autoscaler.svc:9090"}}
	return env
}

func kedaPolicy() *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	return p
}

// scaledObject returns our ScaledObject, or nil.
func (env *testEnv) scaledObject() *unstructured.Unstructured {
	env.t.Helper()
	object := cluster.NewUnstructured(cluster.KindScaledObject)
	err := env.client.Get(env.t.Context(),
		types.NamespacedName{Namespace: fixture.Namespace, Name: plan.AutoscalerName("resize")}, object)
	require.NoError(env.t, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return object
}

// kedaRuns does what KEDA's operator and the garbage collector do with our ScaledObject.
func (env *testEnv) kedaRuns() {
	env.t.Helper()
	env.kedaWorks()
	env.collectsGarbage()
}

func (env *testEnv) kedaWorks() {
	env.t.Helper()
	object := env.scaledObject()
	switch {
	case object == nil:
	case object.GetDeletionTimestamp() != nil:
		object.SetFinalizers(nil)
		require.NoError(env.t, env.client.Update(env.t.Context(), object))
	default:
		object.SetFinalizers([]string{kedaFinalizer})
		labels := object.GetLabels()
		labels["scaledobject.keda.sh/name"] = object.GetName()
		object.SetLabels(labels)
		unstructured.RemoveNestedField(object.Object, "spec", "advanced", "restoreToOriginalReplicaCount") // omitempty
		env.setKEDAConditions(object,
			map[string]any{
				"type": "Ready", "status": "True", "reason": "ScaledObjectReady",
				"message": "ScaledObject is defined correctly and is ready for scaling",
			})
		if env.autoscaler() == nil {
			require.NoError(env.t, env.client.Create(env.t.Context(), autoscalerOfKEDA(object)))
		}
	}
}

// setKEDAConditions sets KEDA's conditions.
func (env *testEnv) setKEDAConditions(object *unstructured.Unstructured, conditions ...any) {
	env.t.Helper()
	require.NoError(env.t, unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"))
	require.NoError(env.t, env.client.Update(env.t.Context(), object))
}

// autoscalerOfKEDA is the HorizontalPodAutoscaler that KEDA creates for a ScaledObject.
func autoscalerOfKEDA(object *unstructured.Unstructured) *autoscalingv2.HorizontalPodAutoscaler {
	ref := target.Decode(object).ScaleTarget()
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

// collectsGarbage deletes KEDA's HorizontalPodAutoscaler after its ScaledObject.
func (env *testEnv) collectsGarbage() {
	env.t.Helper()
	if hpa := env.autoscaler(); hpa != nil && target.ControllerOf(hpa) == cluster.KindScaledObject+" "+hpa.Name &&
		env.scaledObject() == nil {
		require.NoError(env.t, env.client.Delete(env.t.Context(), hpa))
	}
}

func TestAScaledObjectIsWrittenOnceAndKept(t *testing.T) {
	env := newKEDAEnv(t, fixture.Function(), kedaPolicy())
	require.NotContains(t, env.reconcile(), "apply", "there is nothing to serve yet")
	env.answer(700, 10_000)
	require.Equal(t, []string{"patch status", "apply", "patch status"}, env.reconcile(),
		"the scaler knows the decision before KEDA asks")
	object := env.scaledObject()
	require.NotNil(t, object)
	require.Equal(t, "AutoscalingPolicy resize", target.ControllerOf(object))
	ref := target.Decode(object).ScaleTarget()
	require.Equal(
		t,
		v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1",
			Kind:       cluster.KindFunction,
			Name:       "resize",
		},
		*ref,
	)
	require.Empty(t, env.reconcile())
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, message)

	env.kedaRuns()
	require.Equal(t, []string{"patch status"}, env.reconcile())
	status, message = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)
	_, message = env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "ScaledObject "+object.GetName()+" is up to date", message)
	require.Equal(t, object.GetName(), env.policy().Status.ScaledObject)
	require.Empty(t, env.policy().Status.HorizontalPodAutoscaler)
	require.Equal(t, &v1alpha1.ActuatorStatus{Type: v1alpha1.ActuatorKEDA, Reason: "it is set in spec.actuator"},
		env.policy().Status.Actuator)
	require.Empty(t, env.reconcile(), "what KEDA writes of it is no difference")
	require.Empty(t, env.written, "KEDA writes the replicas")

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 30 })
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
	require.Equal(t, int64(30), fixture.Spec(env.scaledObject())["maxReplicaCount"])
	require.Empty(t, env.reconcile())
}

func TestKEDAsRefusalBecomesACondition(t *testing.T) {
	for name, test := range map[string]struct {
		err      error
		messages []string
	}{
		"the webhook refuses": {apierrors.NewForbidden(schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"},
			"resize", errors.New(`admission webhook "vscaledobject.kb.io" denied the request: `+
				`the workload 'resize' is already managed by the hpa 'x'`),
		), []string{"already managed by the hpa 'x'"}},
		// Source: apimachinery 0.37, managedfields/internal/structuredmerge.go: a plain error, which becomes a 500.
		"KEDA is too old for a field": {apierrors.NewInternalError(errors.New(
			"failed to create typed patch object (media/pap-resize; keda.sh/v1alpha1, Kind=ScaledObject): " +
				".spec.fallback.behavior: field not declared in schema",
		)), []string{
			"update KEDA with its CustomResourceDefinitions", ".spec.fallback.behavior: field not declared in schema",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			env := newKEDAEnv(t, fixture.Function(), kedaPolicy())
			env.reconcile()
			env.answer(700, 10_000)
			env.applyFails = test.err
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "False/ApplyRefused", status)
			for _, part := range test.messages {
				require.Contains(t, message, part)
			}
			require.Empty(t, env.reconcile(), "it is not asked again and again")
			env.applyFails = nil
			env.after(2 * time.Minute)
			env.answer(700, 10_000)
			require.Contains(t, env.reconcile(), "apply")
		})
	}
}

// TestAWebhookThatLagsIsRetriedAtOnce: KEDA's webhook sees deletions through a watch of its own.
func TestAWebhookThatLagsIsRetriedAtOnce(t *testing.T) {
	env := newKEDAEnv(t, fixture.Function(), fixture.Policy())
	env.firstDecision(700)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorKEDA })
	env.reconcile()
	env.applyFails = apierrors.NewForbidden(schema.GroupResource{Group: "keda.sh", Resource: "scaledobjects"}, "resize",
		errors.New("already managed by the hpa"))
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "already managed by the hpa")
	status, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "Unknown/ApplyFailed", status)
	env.applyFails = nil
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
}

func TestTheActuatorIsHandedOver(t *testing.T) {
	env := newKEDAEnv(t, fixture.Function(), fixture.Policy())
	env.firstDecision(700)
	hpa := env.autoscaler()
	require.NotNil(t, hpa)

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorKEDA })
	require.Equal(t, []string{"delete " + hpa.Name, "patch status"}, env.reconcile())
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, message)
	require.Equal(t, []string{"patch status", "apply", "patch status"}[1:], env.reconcile())
	env.kedaRuns()
	env.reconcile()
	status, message = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)

	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorKEDA })
		for range 4 {
			env.kedaRuns()
			env.reconcile()
		}
		require.NotNil(t, env.scaledObject())
		env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = actuator })
		require.Equal(t, []string{"delete " + hpa.Name, "patch status"}, env.reconcile())
		_, message = env.condition(v1alpha1.ConditionReady)
		require.Equal(t, "waiting until KEDA finalizes ScaledObject "+hpa.Name, message)
		require.Empty(t, env.reconcile(), "KEDA holds it back")
		env.kedaWorks()
		require.Nil(t, env.scaledObject())
		require.Equal(t, []string{"patch status"}, env.reconcile(), "its HorizontalPodAutoscaler is still there")
		_, message = env.condition(v1alpha1.ConditionReady)
		require.Contains(t, message, "is deleted, which follows its ScaledObject")
		env.collectsGarbage()
		want := "apply"
		if actuator == v1alpha1.ActuatorDirect {
			want = "scale 7"
		}
		require.Equal(t, []string{want, "patch status"}, env.reconcile())
		env.scaleManually(3)
	}
}

func TestAScaledObjectThatStaysIsReported(t *testing.T) {
	env := newKEDAEnv(t, fixture.Function(), kedaPolicy())
	env.firstDecision(700)
	env.kedaRuns()
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorHPA })
	env.reconcile()
	env.after(2 * time.Minute)
	env.answer(700, 10_000)
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScaledObjectStays", status)
	require.Contains(t, message,
		"check that KEDA's operator runs, or if KEDA is uninstalled remove its finalizer finalizer.keda.sh")
	require.NotNil(t, env.autoscaler())
	env.kedaRuns()
	require.Contains(t, env.reconcile(), "apply")
	require.Equal(t, "AutoscalingPolicy resize", target.ControllerOf(env.autoscaler()))
}

// kedaPasses reconciles, with KEDA in between, until nothing changes; a process that has ended is replaced.
func (env *testEnv) kedaPasses(times int) {
	env.t.Helper()
	for range times {
		env.passing = true
		_, err := env.reconciler.Reconcile(env.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		env.passing = false
		if env.crashed {
			env.crashed, env.crashAt = false, 0
			env.restart()
			env.answer(700, 10_000)
		} else {
			require.NoError(env.t, err)
		}
		require.Falsef(env.t, env.twoScale(), "two autoscalers at once after %v", env.writes)
		env.kedaRuns()
	}
}

// twoScale reports whether our HorizontalPodAutoscaler coexists with a ScaledObject that is not being deleted.
func (env *testEnv) twoScale() bool {
	hpa := env.autoscaler()
	return hpa != nil && target.ControllerOf(hpa) == "AutoscalingPolicy resize" && env.scaledObject() != nil
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
					fixture.Spec(function)["replicas"] = int64(7) // the decision
					env := newKEDAEnv(t, function, p)
					env.firstDecision(700)
					env.kedaPasses(3)
					env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = s.to })
					env.crashAt, env.arrives = at, arrives
					env.kedaPasses(8)
					require.Empty(t, env.written)
					require.Equal(t, int64(7), env.replicas())
					status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
					require.Contains(t, status, "True/", message)
					require.Equal(t, s.to, env.policy().Status.Actuator.Type)
					require.Equal(t, s.to == v1alpha1.ActuatorKEDA, env.scaledObject() != nil)
				})
			}
		}
	}
}
