// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// annotate sets an annotation of our ScaledObject, as its user does; an empty value takes it away.
func (w *testWorld) annotate(key, value string) {
	w.t.Helper()
	object := w.scaledObject()
	annotations := map[string]string{key: value}
	if value == "" {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	require.NoError(w.t, w.client.Update(w.t.Context(), object))
}

// TestKEDAIsToldBeforeZeroIsWritten: KEDA would take back what was written by what the status said before.
func TestKEDAIsToldBeforeZeroIsWritten(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(1)
	w := kedaWorld(t, function, idlePolicy(v1alpha1.ActuatorKEDA))
	w.settle(0)
	w.kedaRuns()
	w.reconcile()
	w.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
		MessagesPerSecond: 10, Observations: 40, Variance: 1e-4, LearnedAt: w.now,
	}
	var writes []string
	for len(w.written) == 0 && len(writes) < 10 {
		w.after(testInterval)
		w.answer(0, 10_000)
		writes = w.reconcile()
	}
	require.Equal(t, []string{"patch status", "scale 0"}, writes)
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/ScaledToZero", status, message)
	require.Empty(t, w.reconcile())

	w.restart()
	require.Empty(t, w.reconcile())
	w.after(testInterval)
	w.answer(5_000, 15_000)
	writes = w.reconcile()
	require.Len(t, w.written, 2)
	require.Greater(t, w.written[1], int64(1), "not one and then more")
	require.Equal(t, []string{"patch status", fmt.Sprint("scale ", w.written[1])}, writes)
	require.NotNil(t, w.scaledObject())
}

func TestKEDADoesNotSwitchOnWhatWasSwitchedOff(t *testing.T) {
	w := kedaWorld(t, fixture.Function(), kedaPolicy())
	w.settle(700)
	w.kedaRuns()
	w.reconcile()
	w.byHand(0)
	w.reconcile()
	require.NotNil(t, w.scaledObject().GetDeletionTimestamp())
	w.kedaRuns()
	for range 3 {
		w.after(testInterval)
		w.answer(5_000, 15_000)
		w.reconcile()
		w.kedaRuns()
	}
	require.Nil(t, w.scaledObject())
	require.Zero(t, w.replicas())
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/SwitchedOff", status, message)

	w.byHand(1)
	w.after(testInterval)
	w.answer(700, 15_000)
	w.reconcile()
	require.NotNil(t, w.scaledObject(), "and on again")
}

func TestAPauseOfOurScaledObjectIsRespectedAndToldOf(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(1)
	w := kedaWorld(t, function, idlePolicy(v1alpha1.ActuatorKEDA))
	w.settle(0)
	w.kedaRuns()
	w.annotate(cluster.AnnotationPaused, "true")
	for range 6 {
		w.after(testInterval)
		w.answer(0, 10_000)
		w.reconcile()
	}
	require.Empty(t, w.written)
	require.Equal(t, "true", w.scaledObject().GetAnnotations()[cluster.AnnotationPaused])
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScaledObjectPaused", status)
	require.Contains(t, message, "remove it to go on")
	w.annotate(cluster.AnnotationPaused, "")
	w.reconcile()
	require.Equal(t, []int64{0}, w.written)
}

func TestTakingOverForKEDA(t *testing.T) {
	p := kedaPolicy()
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	foreign := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	w := kedaWorld(t, fixture.Function(), p, foreign, fixture.StatefulSet(nil))
	w.reconcile()
	w.answer(700, 10_000)
	for range 4 {
		w.reconcile()
		w.kedaRuns()
	}
	require.Error(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign.DeepCopy()), "it was put away")
	require.NotNil(t, w.scaledObject())
	status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status, message)

	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	w.reconcile()
	require.NotNil(t, w.scaledObject().GetDeletionTimestamp(), "ours goes first")
	w.reconcile()
	require.Error(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign.DeepCopy()))
	w.kedaWorks()
	w.reconcile()
	require.Error(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign.DeepCopy()),
		"nor beside what KEDA made of it")
	w.collectsGarbage()
	w.reconcile()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign.DeepCopy()))
	require.Empty(t, w.written)
}

// TestGivingBackThatKEDAHoldsUpIsToldOf: else the status would say for ever what it said last.
func TestGivingBackThatKEDAHoldsUpIsToldOf(t *testing.T) {
	p := kedaPolicy()
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	foreign := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	w := kedaWorld(t, fixture.Function(), p, foreign, fixture.StatefulSet(nil))
	w.reconcile()
	w.answer(700, 10_000)
	for range 4 {
		w.reconcile()
		w.kedaRuns()
	}
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	for range 8 { // KEDA's operator is down
		w.after(testInterval)
		w.answer(700, 10_000)
		w.reconcile()
	}
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScaledObjectStays", status)
	require.Contains(t, message, "see that KEDA's operator runs")
	require.Empty(t, w.reconcile(), "it is said once")
	require.Error(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign.DeepCopy()),
		"nothing stands beside it")

	for range 4 {
		w.kedaRuns()
		w.reconcile()
	}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), foreign.DeepCopy()))
}

// TestKEDAIsUninstalledUnderLoad: its CustomResourceDefinition goes, and with it our ScaledObject as soon as KEDA lets
// it go.
func TestKEDAIsUninstalledUnderLoad(t *testing.T) {
	p, function := fixture.Policy(), fixture.Function()
	fixture.Spec(function)["replicas"] = int64(7) // what is decided
	w := kedaWorld(t, function, p)
	w.abilities.NoMetricsAPI = true
	w.settle(700)
	w.kedaPasses(3)
	require.Equal(t, v1alpha1.ActuatorKEDA, w.policy().Status.Actuator.Type)

	require.NoError(t, w.client.Delete(t.Context(), w.scaledObject()))
	w.abilities.KEDA = false
	for range 2 {
		w.after(testInterval)
		w.answer(700, 10_000)
		w.reconcile()
	}
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, message)
	w.kedaRuns()
	w.reconcile()
	status, message = w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)
	require.Equal(t, v1alpha1.ActuatorDirect, w.policy().Status.Actuator.Type)
	require.Empty(t, w.written)
	require.Equal(t, int64(7), w.replicas())
}

// TestAnothersScaledObjectIsNotPausedForOurs: KEDA's webhook would refuse ours even so, and nobody would scale the
// target.
func TestAnothersScaledObjectIsNotPausedForOurs(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint("paused ", paused), func(t *testing.T) {
			p := kedaPolicy()
			p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
			theirs := testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize")
			if paused {
				theirs.SetAnnotations(map[string]string{cluster.AnnotationPaused: "true"})
			}
			w := kedaWorld(t, fixture.Function(), p, theirs)
			w.settle(700)
			w.reconcile()
			status, message := w.condition(v1alpha1.ConditionReady)
			require.Equal(t, "False/OtherScaledObject", status)
			require.Contains(t, message, "ScaledObject resize-so is for the same target")
			require.Nil(t, w.scaledObject())
			live := cluster.NewUnstructured(cluster.KindScaledObject)
			require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), live))
			require.Equal(t, paused, isPaused(live))
		})
	}
}

func TestAScaledObjectOfAnotherPolicyIsThatPolicysMatter(t *testing.T) {
	younger := usersPolicy(v1alpha1.ConflictTakeOver)
	younger.Spec.Actuator = v1alpha1.ActuatorDirect
	younger.CreationTimestamp = metav1.NewTime(time.Unix(1_600_000_000, 0)) // older: it goes first
	theirs := testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize")
	fixture.SetOwner(theirs, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, "resize")
	w := kedaWorld(t, fixture.Function(), kedaPolicy(), younger, theirs)
	key := fixture.Key()
	key.Name = "users"
	w.answer(700, 10_000)
	w.passOf(key)
	w.answer(700, 10_000)
	w.passOf(key)
	live := cluster.NewUnstructured(cluster.KindScaledObject)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), live))
	require.False(t, isPaused(live))
}

func TestOfOurScaledObjectIsKeptWhatIsComparedAndTold(t *testing.T) {
	p := kedaPolicy()
	fields, err := plan.ScaledObject(p, &plan.Target{Ref: p.Spec.ScaleTargetRef},
		plan.Scaler{Address: "scaler:9090"}).Fields()
	require.NoError(t, err)
	object := &unstructured.Unstructured{Object: fields}
	object.SetAnnotations(map[string]string{cluster.AnnotationPausedIn: "true", "note": "long"})
	object.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "R",
			"message": "m",
		}}, "health": map[string]any{"s0": map[string]any{}},
	}
	kept, err := target.Transform(object)
	require.NoError(t, err)
	slimmed, ok := kept.(*unstructured.Unstructured)
	require.True(t, ok)
	live, err := decodeScaledObject(slimmed)
	require.NoError(t, err)
	require.True(t,
		plan.ScaledObjectIsCurrent(live,
			plan.ScaledObject(p, &plan.Target{Ref: p.Spec.ScaleTargetRef}, plan.Scaler{Address: "scaler:9090"})))
	require.Equal(t, []metav1.Condition{{Type: "Ready", Status: "False", Reason: "R", Message: "m"}},
		live.Status.Conditions)
	require.True(t, live.PausedIn)
	require.NotContains(t, slimmed.Object["status"], "health")
	require.NotContains(t, slimmed.GetAnnotations(), "note")
}

func TestWhatKEDASaysOfOursWakesThePolicy(t *testing.T) {
	ours := testScaledObject("apps/v1", "Deployment", "elsewhere")
	fixture.SetOwner(ours, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, "resize")
	w := kedaWorld(t, kedaPolicy())
	require.Equal(t, []string{"resize"}, queued(t, workloadUsers(w.client), ours), "whatever it scales by now")
	says := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		after := object.DeepCopy()
		after.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}
		return after
	}
	wakes := func(before *unstructured.Unstructured) bool {
		return workloadChanged().Update(event.TypedUpdateEvent[*unstructured.Unstructured]{
			ObjectOld: before,
			ObjectNew: says(before),
		})
	}
	require.True(t, wakes(ours))
	require.False(t, wakes(testScaledObject("apps/v1", "Deployment", "elsewhere")), "what it says of others' is theirs")
	require.False(t,
		workloadChanged().Update(event.TypedUpdateEvent[*unstructured.Unstructured]{
			ObjectOld: says(ours),
			ObjectNew: says(ours),
		}))
}
