// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// takingOver is a world in which everything that can be taken over is in the way, and the policy says TakeOver.
func takingOver(t *testing.T, objects ...client.Object) *testWorld {
	t.Helper()
	function, p := fixture.Function(), fixture.Policy()
	fixture.Spec(function)["maxReplicas"] = int64(5)
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	return newTestWorld(t, append(objects, function, p, fixture.ConfigMap())...)
}

// rivals are a foreign autoscaler on the StatefulSet, and KEDA's.
func rivals() []client.Object {
	foreign := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	foreign.Labels, foreign.Annotations = map[string]string{"team": "media"}, map[string]string{"note": "by hand"}
	return []client.Object{
		meshAutoscaler(), foreign,
		testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize"), kedaAutoscaler(),
	}
}

// pass is one of the controller, as it is in life: KEDA and Function Mesh do their part before, Pulsar answers, and an
// error is tried again. Whatever happens, replicas stay, and there are never two autoscalers because of us.
func (w *testWorld) pass() {
	w.t.Helper()
	w.keda()
	w.functionMesh()
	w.after(time.Second)
	w.answer(300, 10_000)
	w.writes = nil
	w.passing = true
	_, _ = w.reconciler.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	w.passing = false
	if w.crashed {
		w.crashed, w.crashAt = false, 0
		w.restart()
	}
	require.Equal(w.t, int64(3), w.replicas())
	if ours, err := w.find(plan.AutoscalerName("resize")); err == nil && ours != nil {
		for _, name := range []string{"resize-function", "theirs", "keda-hpa-resize-so"} {
			other, err := w.find(name)
			require.NoError(w.t, err)
			require.Nil(w.t, other, "%s beside ours", name)
		}
	}
}

func (w *testWorld) find(name string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	var hpa autoscalingv2.HorizontalPodAutoscaler
	err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: name}, &hpa)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return &hpa, err
}

// keda deletes the autoscaler of a ScaledObject that is paused, and makes that of one that is not.
func (w *testWorld) keda() {
	object := testScaledObject("", "", "")
	if w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object) != nil {
		return
	}
	if isPaused(object) {
		_ = client.IgnoreNotFound(w.client.Delete(w.t.Context(), kedaAutoscaler()))
		return
	}
	_ = w.client.Create(w.t.Context(), kedaAutoscaler())
}

// functionMesh makes its autoscaler while maxReplicas is set, and forgets it then.
func (w *testWorld) functionMesh() {
	f := fixture.Function()
	if w.client.Get(w.t.Context(), fixture.Key(), f) == nil && fixture.Spec(f)["maxReplicas"] != nil {
		_ = w.client.Create(w.t.Context(), meshAutoscaler())
	}
}

func (w *testWorld) maxReplicas() any {
	w.t.Helper()
	f := fixture.Function()
	require.NoError(w.t, w.client.Get(w.t.Context(), fixture.Key(), f))
	return fixture.Spec(f)["maxReplicas"]
}

// until passes over the policy until something holds, at most 40 times.
func (w *testWorld) until(what string, holds func() bool) {
	w.t.Helper()
	for range 40 {
		if holds() {
			return
		}
		w.pass()
	}
	w.t.Fatalf("%s: never; %+v", what, w.policy().Status.Conditions)
}

func (w *testWorld) scaling() bool { return w.autoscaler() != nil }

// gone says that the policy has been deleted.
func (w *testWorld) gone() bool {
	return apierrors.IsNotFound(w.client.Get(w.t.Context(), fixture.Key(), &v1alpha1.AutoscalingPolicy{}))
}

// requireGivenBack checks that all is as rivals and takingOver made it.
func (w *testWorld) requireGivenBack() {
	w.t.Helper()
	w.keda()
	w.functionMesh()
	require.Equal(w.t, int64(5), w.maxReplicas())
	foreign, err := w.find("theirs")
	require.NoError(w.t, err)
	require.NotNil(w.t, foreign)
	require.Equal(w.t, map[string]string{"team": "media"}, foreign.Labels)
	require.Equal(w.t, map[string]string{"note": "by hand"}, foreign.Annotations)
	require.Equal(w.t, otherAutoscaler("apps/v1", "StatefulSet", "resize-function").Spec, foreign.Spec)
	object := testScaledObject("", "", "")
	require.NoError(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
	require.Empty(w.t, object.GetAnnotations())
	for _, name := range []string{"resize-function", "keda-hpa-resize-so"} {
		hpa, err := w.find(name)
		require.NoError(w.t, err)
		require.NotNil(w.t, hpa, name)
	}
	require.Nil(w.t, w.autoscaler())
}

func TestEverythingIsTakenOverAndGivenBack(t *testing.T) {
	w := takingOver(t, rivals()...)
	w.reconcile()
	w.until("our autoscaler", w.scaling)
	require.Nil(t, w.maxReplicas())
	taken := w.policy().Status.TakenOver
	require.Equal(t, int32(5), *taken.MaxReplicas)
	require.Len(t, taken.HorizontalPodAutoscalers, 1)
	require.Equal(t, []v1alpha1.ObjectName{"resize-so"}, taken.ScaledObjects)
	require.Contains(t, w.policy().Finalizers, plan.Finalizer)
	w.pass()
	ready, _ := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", ready)

	t.Log("the policy refuses by now")
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	w.until("nothing to hold any more",
		func() bool { return w.policy().Status.TakenOver == nil && len(w.policy().Finalizers) == 0 })
	w.requireGivenBack()
	for range 8 {
		w.pass()
		require.Nil(t, w.autoscaler())
	}
	ready, _ = w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/FunctionHasOwnAutoscaler", ready)

	t.Log("it takes over again, and is deleted")
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver })
	w.until("our autoscaler", w.scaling)
	require.NoError(t, w.client.Delete(t.Context(), fixture.Policy()))
	w.until("the policy to go", w.gone)
	w.requireGivenBack()
}

// TestACrashAnywhereLosesNothing ends the process at every write on the way there and back, before and after it
// arrives.
func TestACrashAnywhereLosesNothing(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		for at, ended := 1, true; ended; at++ {
			t.Run(fmt.Sprintf("write %d, arrived %t", at, arrived), func(t *testing.T) {
				w := takingOver(t, rivals()...)
				w.reconcile()
				w.crashAt, w.arrives = at, arrived
				w.until("our autoscaler", w.scaling)
				require.NoError(t, w.client.Delete(t.Context(), fixture.Policy()))
				w.until("the policy to go", w.gone)
				w.requireGivenBack()
				ended = w.crashAt == 0
				require.True(t, ended || at > 12, "writes on the way")
			})
		}
	}
}

func TestNothingIsPutAwayInVain(t *testing.T) {
	large := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
	large.Annotations = map[string]string{"large": string(make([]byte, maxManifest))}
	many := func() (all []client.Object) {
		for i := range 5 {
			hpa := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
			hpa.Name = fmt.Sprint("theirs-", i)
			all = append(all, hpa)
		}
		return all
	}
	older := fixture.Policy()
	older.Name, older.UID = "a", "uid-a"
	tests := map[string]struct {
		objects []client.Object
		change  func(f *unstructured.Unstructured)
		want    string
		message string
	}{
		"another controller makes one of them": {
			objects: []client.Object{owned("Widget", "w")},
			want:    "False/FunctionHasOwnAutoscaler", message: "Widget w made it",
		},
		"one is too large to be given back": {
			objects: []client.Object{large}, want: "False/FunctionHasOwnAutoscaler",
			message: "more than 16 KiB",
		},
		"there are too many": {
			objects: many(), want: "False/FunctionHasOwnAutoscaler",
			message: "at most 4 each can be given back",
		},
		"another policy goes first": {objects: []client.Object{older}, want: "False/OlderPolicy"},
		"a rollout is paused": {
			change: pauseRollout, want: "False/FunctionHasOwnAutoscaler",
			message: "it is not taken over for now: a rollout",
		},
		"a Function has our autoscaler's name": {objects: []client.Object{namesake()}, want: "False/AutoscalerNameClash"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := takingOver(t, append(test.objects, meshAutoscaler())...)
			if test.change != nil {
				f := fixture.Function()
				require.NoError(t, w.client.Get(t.Context(), fixture.Key(), f))
				test.change(f)
				require.NoError(t, w.client.Update(t.Context(), f))
			}
			w.reconcile()
			for range 8 {
				w.after(time.Second)
				w.answer(300, 10_000)
				for _, wrote := range w.reconcile() {
					require.Equal(t, "patch status", wrote)
				}
			}
			status, message := w.condition(v1alpha1.ConditionReady)
			require.Equal(t, test.want, status)
			require.Contains(t, message, test.message)
			require.Empty(t, w.policy().Finalizers)
			require.Nil(t, w.policy().Status.TakenOver)
		})
	}
	t.Run("the backlog is not known", func(t *testing.T) {
		w := takingOver(t, meshAutoscaler())
		for range 3 {
			require.NotContains(t, w.reconcile(), "delete resize-function")
		}
		_, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
		require.Contains(t, message, "when the backlog is known")
		require.Equal(t, int64(5), w.maxReplicas())
	})
	t.Run("the policy only recommends", func(t *testing.T) {
		w := takingOver(t, meshAutoscaler())
		w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
		w.settle(300)
		require.Equal(t, int64(5), w.maxReplicas())
	})
}

func TestWhoPutsBackWhatWasPutAwayIsNotFought(t *testing.T) {
	w := takingOver(t, meshAutoscaler())
	w.reconcile()
	w.until("our autoscaler", w.scaling)
	w.after(time.Minute)
	f := fixture.Function()
	require.NoError(t, w.client.Get(t.Context(), fixture.Key(), f))
	fixture.Spec(f)["maxReplicas"] = int64(5)
	require.NoError(t, w.client.Update(t.Context(), f))
	w.answer(300, 10_000)
	w.reconcile()
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/Recreated", status)
	require.Contains(t, message, "GitOps")
	require.Equal(t, int64(5), w.maxReplicas())
}

func TestWhatIsLeftBehindOfWhatWasPutBackIsPutAway(t *testing.T) {
	w := takingOver(t, meshAutoscaler())
	w.reconcile()
	w.until("our autoscaler", w.scaling)
	set := func(value any) {
		f := fixture.Function()
		require.NoError(t, w.client.Get(t.Context(), fixture.Key(), f))
		fixture.Spec(f)["maxReplicas"] = value
		if value == nil {
			delete(fixture.Spec(f), "maxReplicas")
		}
		require.NoError(t, w.client.Update(t.Context(), f))
	}
	set(int64(5))
	w.functionMesh()
	w.after(time.Minute)
	w.answer(300, 10_000)
	w.reconcile()
	status, _ := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/Recreated", status)
	set(nil)
	for range 4 {
		w.after(5 * time.Second)
		w.answer(300, 10_000)
		w.reconcile()
	}
	status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status, message)
	left, err := w.find("resize-function")
	require.NoError(t, err)
	require.Nil(t, left)
}

func TestAScaledObjectIsPausedAsKedaSaysSo(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "1": true, "yes": true, "": true, "false": false, "0": false} {
		object := testScaledObject("", "", "")
		object.SetAnnotations(map[string]string{cluster.AnnotationPaused: value})
		require.Equal(t, want, isPaused(object), "%q", value)
	}
	require.False(t, isPaused(testScaledObject("", "", "")))
}

func TestWhatSomebodyChangedMeanwhileStays(t *testing.T) {
	w := takingOver(t, rivals()...)
	w.reconcile()
	w.until("our autoscaler", w.scaling)
	f := fixture.Function()
	require.NoError(t, w.client.Get(t.Context(), fixture.Key(), f))
	fixture.Spec(f)["maxReplicas"] = int64(9)
	require.NoError(t, w.client.Update(t.Context(), f))
	object := testScaledObject("", "", "")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	object.SetAnnotations(map[string]string{cluster.AnnotationPaused: "true", "by": "somebody"})
	require.NoError(t, w.client.Update(t.Context(), object))
	theirs := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	theirs.Spec.MaxReplicas = 77
	require.NoError(t, w.client.Create(t.Context(), theirs))
	w.events()

	require.NoError(t, w.client.Delete(t.Context(), fixture.Policy()))
	for range 40 {
		if w.gone() {
			break
		}
		w.after(time.Second)
		_, _ = w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		require.Equal(t, int64(3), w.replicas())
	}
	require.True(t, w.gone())
	require.Equal(t, int64(9), w.maxReplicas())
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	require.Equal(t, map[string]string{cluster.AnnotationPaused: "true", "by": "somebody"}, object.GetAnnotations())
	found, err := w.find("theirs")
	require.NoError(t, err)
	require.Equal(t, int32(77), found.Spec.MaxReplicas)
	require.Contains(t, fmt.Sprint(w.events()), "maxReplicas 5: a user or another controller set it meanwhile")
}

func TestADeletedPolicyNeverHangs(t *testing.T) {
	forbidden := apierrors.NewForbidden(autoscalingv2.Resource("functions"), "resize", errors.New("needs patch"))
	tests := map[string]struct {
		spoil func(w *testWorld)
		event string
		most  int
	}{
		"the target is gone": {
			spoil: func(w *testWorld) { require.NoError(w.t, w.client.Delete(w.t.Context(), fixture.Function())) },
			event: "the target is gone", most: 3,
		},
		"the ScaledObject is gone": {
			spoil: func(w *testWorld) {
				require.NoError(w.t, w.client.Delete(w.t.Context(), testScaledObject("", "", "")))
			},
			event: "AutoscalerRestored", most: 3,
		},
		"a permission is missing": {
			spoil: func(w *testWorld) { w.patchFails = forbidden }, event: "restore by hand",
			most: 3,
		},
		"the API server fails": {
			spoil: func(w *testWorld) { w.patchFails = errors.New("boom") }, event: "restore by hand",
			most: maxCleanupAttempts + 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := takingOver(t, rivals()...)
			w.reconcile()
			w.until("our autoscaler", w.scaling)
			w.events()
			test.spoil(w)
			require.NoError(t, w.client.Delete(t.Context(), fixture.Policy()))
			passes := 0
			for ; !w.gone() && passes < 100; passes++ {
				w.after(soon)
				_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
				require.NoError(t, err)
			}
			require.True(t, w.gone())
			require.LessOrEqual(t, passes, test.most)
			require.Contains(t, fmt.Sprint(w.events()), test.event)
		})
	}
}

func TestMaxReplicasOfAMeshAreChangedInItsEntry(t *testing.T) {
	mesh := cluster.NewUnstructured(cluster.KindFunctionMesh)
	mesh.SetNamespace(fixture.Namespace)
	mesh.SetName("re")
	mesh.Object["spec"] = map[string]any{"sinks": []any{map[string]any{"name": "size"}}, "functions": []any{
		map[string]any{"name": "other", "maxReplicas": int64(7)}, map[string]any{
			"name": "size", "replicas": int64(2),
			"maxReplicas": int64(5),
		},
	}}
	w := newTestWorld(t, mesh)
	p := fixture.Policy()
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "re",
		Component: v1alpha1.MeshComponent{Kind: "Function", Name: "size"},
	}
	world := plan.Observed{Policy: p, Target: &plan.Target{
		Scaling: plan.ByMesh, Ref: v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function",
			Name: "re-size",
		},
	}}
	entries := func() []any {
		live := cluster.NewUnstructured(cluster.KindFunctionMesh)
		require.NoError(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: "re"}, live))
		list, _, err := unstructured.NestedSlice(live.Object, "spec", "functions")
		require.NoError(t, err)
		return list
	}
	other := map[string]any{"name": "other", "maxReplicas": int64(7)}
	require.NoError(t, w.reconciler.applier.suspender.setMaxReplicas(t.Context(), world, new(int32(4)), nil))
	require.Empty(t, w.writes, "it is 5 by now")
	require.NoError(t, w.reconciler.applier.suspender.setMaxReplicas(t.Context(), world, new(int32(5)), nil))
	require.Equal(t, []any{other, map[string]any{"name": "size", "replicas": int64(2)}}, entries())
	require.NoError(t, w.reconciler.applier.suspender.setMaxReplicas(t.Context(), world, nil, new(int32(5))))
	require.Equal(t, []any{other, map[string]any{"name": "size", "replicas": int64(2), "maxReplicas": int64(5)}},
		entries())
	world.Policy.Spec.ScaleTargetRef.Component.Name = "gone"
	require.NoError(t, w.reconciler.applier.suspender.setMaxReplicas(t.Context(), world, nil, new(int32(5))))
}
