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
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// annotate sets an annotation of our ScaledObject like a user; an empty value removes it.
func (env *testEnv) annotate(key, value string) {
	env.t.Helper()
	object := env.scaledObject()
	annotations := map[string]string{key: value}
	if value == "" {
		annotations = nil
	}
	object.SetAnnotations(annotations)
	require.NoError(env.t, env.client.Update(env.t.Context(), object))
}

// TestTheStatusIsWrittenBeforeZeroForKEDA: KEDA would otherwise scale back to the replicas of the old status.
func TestTheStatusIsWrittenBeforeZeroForKEDA(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(1)
	env := newKEDAEnv(t, function, idlePolicy(v1alpha1.ActuatorKEDA))
	env.firstDecision(0)
	env.kedaRuns()
	env.reconcile()
	env.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
		MessagesPerSecond: 10, Observations: 40, Variance: 1e-4, LearnedAt: env.now,
	}
	var writes []string
	for len(env.written) == 0 && len(writes) < 10 {
		env.after(testInterval)
		env.answer(0, 10_000)
		writes = env.reconcile()
	}
	require.Equal(t, []string{"patch status", "scale 0"}, writes)
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/ScaledToZero", status, message)
	require.Empty(t, env.reconcile())

	env.restart()
	require.Empty(t, env.reconcile())
	env.after(testInterval)
	env.answer(5_000, 15_000)
	writes = env.reconcile()
	require.Len(t, env.written, 2)
	require.Greater(t, env.written[1], int64(1), "not one and then more")
	require.Equal(t, []string{"patch status", fmt.Sprint("scale ", env.written[1])}, writes)
	require.NotNil(t, env.scaledObject())
}

func TestKEDADoesNotSwitchOnWhatWasSwitchedOff(t *testing.T) {
	env := newKEDAEnv(t, fixture.Function(), kedaPolicy())
	env.firstDecision(700)
	env.kedaRuns()
	env.reconcile()
	env.scaleManually(0)
	env.reconcile()
	require.NotNil(t, env.scaledObject().GetDeletionTimestamp())
	env.kedaRuns()
	for range 3 {
		env.after(testInterval)
		env.answer(5_000, 15_000)
		env.reconcile()
		env.kedaRuns()
	}
	require.Nil(t, env.scaledObject())
	require.Zero(t, env.replicas())
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/SwitchedOff", status, message)

	env.scaleManually(1)
	env.after(testInterval)
	env.answer(700, 15_000)
	env.reconcile()
	require.NotNil(t, env.scaledObject(), "and on again")
}

func TestAPauseOfOurScaledObjectIsRespectedAndReported(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(1)
	env := newKEDAEnv(t, function, idlePolicy(v1alpha1.ActuatorKEDA))
	env.firstDecision(0)
	env.kedaRuns()
	env.annotate(plan.AnnotationPaused, "true")
	for range 6 {
		env.after(testInterval)
		env.answer(0, 10_000)
		env.reconcile()
	}
	require.Empty(t, env.written)
	require.Equal(t, "true", env.scaledObject().GetAnnotations()[plan.AnnotationPaused])
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScaledObjectPaused", status)
	require.Contains(t, message, "remove it to resume")
	env.annotate(plan.AnnotationPaused, "")
	env.reconcile()
	require.Equal(t, []int64{0}, env.written)
}

// takenOverForKEDA has a ScaledObject of a policy that suspended another autoscaler. foreign reads that autoscaler.
func takenOverForKEDA(t *testing.T) (env *testEnv, foreign func() error) {
	t.Helper()
	p := kedaPolicy()
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	suspended := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	env = newKEDAEnv(t, fixture.Function(), p, suspended, fixture.StatefulSet(nil))
	env.reconcile()
	env.answer(700, 10_000)
	for range 4 {
		env.reconcile()
		env.kedaRuns()
	}
	return env, func() error {
		return env.client.Get(t.Context(), client.ObjectKeyFromObject(suspended), suspended.DeepCopy())
	}
}

func TestTakingOverForKEDA(t *testing.T) {
	env, foreign := takenOverForKEDA(t)
	require.Error(t, foreign(), "suspended")
	require.NotNil(t, env.scaledObject())
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status, message)

	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	env.reconcile()
	require.NotNil(t, env.scaledObject().GetDeletionTimestamp(), "ours goes first")
	env.reconcile()
	require.Error(t, foreign())
	env.kedaWorks()
	env.reconcile()
	require.Error(t, foreign(), "nor while KEDA's HorizontalPodAutoscaler exists")
	env.collectsGarbage()
	env.reconcile()
	require.NoError(t, foreign())
	require.Empty(t, env.written)
}

// TestARestorationThatKEDADelaysIsReported: the status would otherwise keep its last message.
func TestARestorationThatKEDADelaysIsReported(t *testing.T) {
	env, foreign := takenOverForKEDA(t)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	for range 8 { // KEDA's operator is down
		env.after(testInterval)
		env.answer(700, 10_000)
		env.reconcile()
	}
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/ScaledObjectStays", status)
	require.Contains(t, message, "check that KEDA's operator runs")
	require.Empty(t, env.reconcile(), "it is written once")
	require.Error(t, foreign(), "nothing while it exists")

	for range 4 {
		env.kedaRuns()
		env.reconcile()
	}
	require.NoError(t, foreign())
}

// TestKEDAIsUninstalledUnderLoad: its CustomResourceDefinition is deleted, and with it our ScaledObject once KEDA
// removes its finalizer.
func TestKEDAIsUninstalledUnderLoad(t *testing.T) {
	p, function := fixture.Policy(), fixture.Function()
	fixture.Spec(function)["replicas"] = int64(7) // the decision
	env := newKEDAEnv(t, function, p)
	env.capabilities.NoMetricsAPI = true
	env.firstDecision(700)
	env.kedaPasses(3)
	require.Equal(t, v1alpha1.ActuatorKEDA, env.policy().Status.Actuator.Type)

	require.NoError(t, env.client.Delete(t.Context(), env.scaledObject()))
	env.capabilities.KEDA = false
	for range 2 {
		env.after(testInterval)
		env.answer(700, 10_000)
		env.reconcile()
	}
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status, message)
	env.kedaRuns()
	env.reconcile()
	status, message = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status, message)
	require.Equal(t, v1alpha1.ActuatorDirect, env.policy().Status.Actuator.Type)
	require.Empty(t, env.written)
	require.Equal(t, int64(7), env.replicas())
}

// TestAnothersScaledObjectIsNotPausedForOurs: KEDA's webhook would refuse ours even so, and the target would have no
// autoscaler.
func TestAnothersScaledObjectIsNotPausedForOurs(t *testing.T) {
	for _, paused := range []bool{false, true} {
		t.Run(fmt.Sprint("paused ", paused), func(t *testing.T) {
			p := kedaPolicy()
			p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
			theirs := testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize")
			if paused {
				theirs.SetAnnotations(map[string]string{plan.AnnotationPaused: "true"})
			}
			env := newKEDAEnv(t, fixture.Function(), p, theirs)
			env.firstDecision(700)
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "False/OtherScaledObject", status)
			require.Contains(t, message, "ScaledObject resize-so scales the same target")
			require.Nil(t, env.scaledObject())
			live := cluster.NewUnstructured(cluster.KindScaledObject)
			require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), live))
			require.Equal(t, paused, plan.IsPaused(live.GetAnnotations()))
		})
	}
}

func TestAScaledObjectOfAnotherPolicyIsLeftToThatPolicy(t *testing.T) {
	younger := usersPolicy(v1alpha1.ConflictTakeOver)
	younger.Spec.Actuator = v1alpha1.ActuatorDirect
	younger.CreationTimestamp = metav1.NewTime(time.Unix(1_600_000_000, 0)) // older: takes precedence
	theirs := testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize")
	fixture.SetOwner(theirs, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, "resize")
	env := newKEDAEnv(t, fixture.Function(), kedaPolicy(), younger, theirs)
	key := fixture.Key()
	key.Name = "users"
	env.answer(700, 10_000)
	env.passOf(key)
	env.answer(700, 10_000)
	env.passOf(key)
	live := cluster.NewUnstructured(cluster.KindScaledObject)
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), live))
	require.False(t, plan.IsPaused(live.GetAnnotations()))
}

func TestTheCacheKeepsTheComparedFieldsOfOurScaledObject(t *testing.T) {
	p := kedaPolicy()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(
		plan.ScaledObject(p, &plan.Target{Ref: p.Spec.ScaleTargetRef}, plan.Scaler{Address: "scaler:9090"}))
	require.NoError(t, err)
	object := &unstructured.Unstructured{Object: fields}
	object.SetAnnotations(map[string]string{plan.AnnotationPausedIn: "true", "note": "long"})
	object.Object["status"] = map[string]any{
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "False", "reason": "R",
			"message": "m",
		}}, "health": map[string]any{"s0": map[string]any{}},
	}
	kept := target.Decode(object)
	live, err := liveScaledObject(kept)
	require.NoError(t, err)
	require.True(t,
		plan.ScaledObjectIsCurrent(live,
			plan.ScaledObject(p, &plan.Target{Ref: p.Spec.ScaleTargetRef}, plan.Scaler{Address: "scaler:9090"})))
	require.Equal(t, []metav1.Condition{{Type: "Ready", Status: "False", Reason: "R", Message: "m"}},
		live.Status.Conditions)
	require.True(t, live.PausedIn)
	require.NotContains(t, kept.Annotations, "note")
}

func TestConditionsOfOurScaledObjectEnqueueThePolicy(t *testing.T) {
	ours := testScaledObject("apps/v1", "Deployment", "elsewhere")
	ours.SetName(plan.AutoscalerName("resize"))
	fixture.SetOwner(ours, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, "resize")
	env := newKEDAEnv(t, kedaPolicy())
	require.Equal(t, []string{"resize"}, fixture.Enqueued(t, workloadUsers(env.client), target.Decode(ours)),
		"whatever it scales by now")
	says := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		after := object.DeepCopy()
		after.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False"}}}
		return after
	}
	wakes := func(before *unstructured.Unstructured) bool {
		return workloadChanged().Update(event.TypedUpdateEvent[*target.Cached]{
			ObjectOld: target.Decode(before),
			ObjectNew: target.Decode(says(before)),
		})
	}
	require.True(t, wakes(ours))
	require.False(t, wakes(testScaledObject("apps/v1", "Deployment", "elsewhere")), "what it says of others' is theirs")
	require.False(t,
		workloadChanged().Update(event.TypedUpdateEvent[*target.Cached]{
			ObjectOld: target.Decode(says(ours)),
			ObjectNew: target.Decode(says(ours)),
		}))
}
