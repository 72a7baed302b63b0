// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"strings"
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

// takingOver has every autoscaler that can be suspended, and a policy with conflictPolicy TakeOver.
func takingOver(t *testing.T, objects ...client.Object) *testEnv {
	t.Helper()
	function, p := fixture.Function(), fixture.Policy()
	fixture.Spec(function)["maxReplicas"] = int64(5)
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	return newTestEnv(t, append(objects, function, p, fixture.ConfigMap())...)
}

// foreignAutoscalers are another HorizontalPodAutoscaler on the StatefulSet, and KEDA's.
func foreignAutoscalers() []client.Object {
	foreign := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	foreign.Labels, foreign.Annotations = map[string]string{"team": "media"}, map[string]string{"note": "by hand"}
	return []client.Object{
		meshAutoscaler(), foreign,
		testScaledObject("compute.functionmesh.io/v1alpha1", "Function", "resize"), kedaAutoscaler(),
	}
}

// pass runs one reconcile after KEDA and Function Mesh did their part; a failed one is retried. It checks that replicas
// stay and that the controller never causes two autoscalers.
func (env *testEnv) pass() {
	env.t.Helper()
	env.keda()
	env.functionMesh()
	env.after(time.Second)
	env.answer(300, 10_000)
	env.writes = nil
	env.passing = true
	_, _ = env.reconciler.Reconcile(env.t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	env.passing = false
	if env.crashed {
		env.crashed, env.crashAt = false, 0
		env.restart()
	}
	require.Equal(env.t, int64(3), env.replicas())
	if ours, err := env.find(plan.AutoscalerName("resize")); err == nil && ours != nil {
		for _, name := range []string{"resize-function", "theirs", "keda-hpa-resize-so"} {
			other, err := env.find(name)
			require.NoError(env.t, err)
			require.Nil(env.t, other, "%s next to ours", name)
		}
	}
}

func (env *testEnv) find(name string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	var hpa autoscalingv2.HorizontalPodAutoscaler
	err := env.client.Get(env.t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: name}, &hpa)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // none is an answer
	}
	return &hpa, err
}

// keda deletes the autoscaler of a paused ScaledObject, and creates that of any other.
func (env *testEnv) keda() {
	object := testScaledObject("", "", "")
	if env.client.Get(env.t.Context(), client.ObjectKeyFromObject(object), object) != nil {
		return
	}
	if plan.IsPaused(object.GetAnnotations()) {
		_ = client.IgnoreNotFound(env.client.Delete(env.t.Context(), kedaAutoscaler()))
		return
	}
	_ = env.client.Create(env.t.Context(), kedaAutoscaler())
}

// functionMesh creates its autoscaler while maxReplicas is set, and abandons it afterwards.
func (env *testEnv) functionMesh() {
	f := fixture.Function()
	if env.client.Get(env.t.Context(), fixture.Key(), f) == nil && fixture.Spec(f)["maxReplicas"] != nil {
		_ = env.client.Create(env.t.Context(), meshAutoscaler())
	}
}

func (env *testEnv) maxReplicas() any {
	env.t.Helper()
	f := fixture.Function()
	require.NoError(env.t, env.client.Get(env.t.Context(), fixture.Key(), f))
	return fixture.Spec(f)["maxReplicas"]
}

// until runs passes until the condition holds, at most 40.
func (env *testEnv) until(what string, holds func() bool) {
	env.t.Helper()
	for range 40 {
		if holds() {
			return
		}
		env.pass()
	}
	env.t.Fatalf("%s: never; %+v", what, env.policy().Status.Conditions)
}

// A webhook refuses our autoscaler: nothing is suspended for it. A quota may have room once the other one is gone.
func TestNothingIsSuspendedForAnAutoscalerThatIsRefused(t *testing.T) {
	refused := func(why string) error {
		return apierrors.NewForbidden(autoscalingv2.Resource("horizontalpodautoscalers"), "pap-resize", errors.New(why))
	}
	tests := map[string]struct {
		fails     error
		actuator  v1alpha1.Actuator
		want      string
		suspended bool
	}{
		"by a webhook":                     {fails: refused("denied by Kyverno"), want: "False/ApplyRefused"},
		"by a webhook that does not serve": {fails: errors.New("failed calling webhook"), want: "False/TakeOverFailed"},
		"by a quota":                       {fails: refused("exceeded quota: one"), suspended: true},
		"by a webhook without dry run": {
			fails:     apierrors.NewBadRequest(`admission webhook "w" does not support dry run`),
			suspended: true,
		},
		"and not needed": {fails: refused("denied by Kyverno"), actuator: v1alpha1.ActuatorDirect, suspended: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := takingOver(t, foreignAutoscalers()...)
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = test.actuator })
			env.reconcile()
			env.applyFails = test.fails
			dryRuns := 0
			for range 60 {
				env.pass()
				dryRuns += strings.Count(strings.Join(env.writes, "\n"), "dry run")
			}
			if test.suspended {
				require.NotNil(t, env.policy().Status.TakenOver)
				return
			}
			require.LessOrEqual(t, dryRuns, 6, "at a pace")
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, status, message)
			require.Contains(t, message, test.fails.Error())
			require.Nil(t, env.policy().Status.TakenOver)
			require.Empty(t, env.policy().Finalizers)
			env.requireRestored()

			env.applyFails = nil
			for range 60 {
				env.pass()
			}
			require.NotNil(t, env.autoscaler())
		})
	}
}

func (env *testEnv) scaling() bool { return env.autoscaler() != nil }

// gone reports whether the policy is deleted.
func (env *testEnv) gone() bool {
	return apierrors.IsNotFound(env.client.Get(env.t.Context(), fixture.Key(), &v1alpha1.AutoscalingPolicy{}))
}

// requireRestored checks that everything is as foreignAutoscalers and takingOver created it.
func (env *testEnv) requireRestored() {
	env.t.Helper()
	env.keda()
	env.functionMesh()
	require.Equal(env.t, int64(5), env.maxReplicas())
	foreign, err := env.find("theirs")
	require.NoError(env.t, err)
	require.NotNil(env.t, foreign)
	require.Equal(env.t, map[string]string{"team": "media"}, foreign.Labels)
	require.Equal(env.t, map[string]string{"note": "by hand"}, foreign.Annotations)
	require.Equal(env.t, otherAutoscaler("apps/v1", "StatefulSet", "resize-function").Spec, foreign.Spec)
	object := testScaledObject("", "", "")
	require.NoError(env.t, env.client.Get(env.t.Context(), client.ObjectKeyFromObject(object), object))
	require.Empty(env.t, object.GetAnnotations())
	for _, name := range []string{"resize-function", "keda-hpa-resize-so"} {
		hpa, err := env.find(name)
		require.NoError(env.t, err)
		require.NotNil(env.t, hpa, name)
	}
	require.Nil(env.t, env.autoscaler())
}

func TestEverythingIsTakenOverAndRestored(t *testing.T) {
	env := takingOver(t, foreignAutoscalers()...)
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	require.Nil(t, env.maxReplicas())
	taken := env.policy().Status.TakenOver
	require.Equal(t, int32(5), *taken.MaxReplicas)
	require.Len(t, taken.HorizontalPodAutoscalers, 1)
	require.Equal(t, []v1alpha1.ObjectName{"resize-so"}, taken.ScaledObjects)
	require.Contains(t, env.policy().Finalizers, plan.Finalizer)
	env.pass()
	ready, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", ready)

	t.Log("the policy refuses by now")
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	env.until("nothing to hold any more",
		func() bool { return env.policy().Status.TakenOver == nil && len(env.policy().Finalizers) == 0 })
	env.requireRestored()
	for range 8 {
		env.pass()
		require.Nil(t, env.autoscaler())
	}
	ready, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/FunctionHasOwnAutoscaler", ready)

	t.Log("it takes over again, and is deleted")
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver })
	env.until("our autoscaler", env.scaling)
	require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
	env.until("the policy to go", env.gone)
	env.requireRestored()
}

// TestACrashAnywhereLosesNothing ends the process at every write of the take-over and of the restoration, before and
// after it arrives.
func TestACrashAnywhereLosesNothing(t *testing.T) {
	for _, arrived := range []bool{false, true} {
		for at, ended := 1, true; ended; at++ {
			t.Run(fmt.Sprintf("write %d, arrived %t", at, arrived), func(t *testing.T) {
				ended = false
				env := takingOver(t, foreignAutoscalers()...)
				env.reconcile()
				env.crashAt, env.arrives = at, arrived
				env.until("our autoscaler", env.scaling)
				require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
				env.until("the policy to go", env.gone)
				env.requireRestored()
				ended = env.crashAt == 0
				require.True(t, ended || at > 12, "writes on the way")
			})
		}
	}
}

func TestNothingIsSuspendedInVain(t *testing.T) {
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
			want:    "False/FunctionHasOwnAutoscaler", message: "Widget w created it",
		},
		"one is too large to be restored": {
			objects: []client.Object{large}, want: "False/FunctionHasOwnAutoscaler",
			message: "more than 16 KiB",
		},
		"there are too many": {
			objects: many(), want: "False/FunctionHasOwnAutoscaler",
			message: "at most 4 each can be restored",
		},
		"another policy takes precedence": {objects: []client.Object{older}, want: "False/OlderPolicy"},
		"a rollout is paused": {
			change: pauseRollout, want: "False/FunctionHasOwnAutoscaler",
			message: "the controller does not take it over now: a rollout",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := takingOver(t, append(test.objects, meshAutoscaler())...)
			if test.change != nil {
				f := fixture.Function()
				require.NoError(t, env.client.Get(t.Context(), fixture.Key(), f))
				test.change(f)
				require.NoError(t, env.client.Update(t.Context(), f))
			}
			env.reconcile()
			for range 8 {
				env.after(time.Second)
				env.answer(300, 10_000)
				for _, wrote := range env.reconcile() {
					require.Equal(t, "patch status", wrote)
				}
			}
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, test.want, status)
			require.Contains(t, message, test.message)
			require.Empty(t, env.policy().Finalizers)
			require.Nil(t, env.policy().Status.TakenOver)
		})
	}
	t.Run("the backlog is not known", func(t *testing.T) {
		env := takingOver(t, meshAutoscaler())
		for range 3 {
			require.NotContains(t, env.reconcile(), "delete resize-function")
		}
		_, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
		require.Contains(t, message, "once the backlog is known")
		env.after(61 * time.Second)
		env.reconcile()
		stalled, _ := env.condition(v1alpha1.ConditionStalled)
		require.Empty(t, stalled, "it ends by itself")
		require.Equal(t, int64(5), env.maxReplicas())
	})
	t.Run("the policy only recommends", func(t *testing.T) {
		env := takingOver(t, meshAutoscaler())
		env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeRecommend })
		env.firstDecision(300)
		require.Equal(t, int64(5), env.maxReplicas())
	})
}

func TestAUserWhoRestoresASuspendedAutoscalerIsNotFought(t *testing.T) {
	env := takingOver(t, meshAutoscaler())
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	env.after(time.Minute)
	f := fixture.Function()
	require.NoError(t, env.client.Get(t.Context(), fixture.Key(), f))
	fixture.Spec(f)["maxReplicas"] = int64(5)
	require.NoError(t, env.client.Update(t.Context(), f))
	env.answer(300, 10_000)
	env.reconcile()
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "False/Recreated", status)
	require.Contains(t, message, "GitOps")
	require.Equal(t, int64(5), env.maxReplicas())
}

func TestAnAutoscalerLeftByFunctionMeshIsSuspended(t *testing.T) {
	env := takingOver(t, meshAutoscaler())
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	set := func(value any) {
		f := fixture.Function()
		require.NoError(t, env.client.Get(t.Context(), fixture.Key(), f))
		fixture.Spec(f)["maxReplicas"] = value
		if value == nil {
			delete(fixture.Spec(f), "maxReplicas")
		}
		require.NoError(t, env.client.Update(t.Context(), f))
	}
	set(int64(5))
	env.functionMesh()
	env.after(time.Minute)
	env.answer(300, 10_000)
	env.reconcile()
	status, _ := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/Recreated", status)
	set(nil)
	for range 4 {
		env.after(5 * time.Second)
		env.answer(300, 10_000)
		env.reconcile()
	}
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Applied", status, message)
	left, err := env.find("resize-function")
	require.NoError(t, err)
	require.Nil(t, left)
}

func TestAScaledObjectIsPausedAsInKEDA(t *testing.T) {
	for value, want := range map[string]bool{"true": true, "1": true, "yes": true, "": true, "false": false, "0": false} {
		object := testScaledObject("", "", "")
		object.SetAnnotations(map[string]string{plan.AnnotationPaused: value})
		require.Equal(t, want, plan.IsPaused(object.GetAnnotations()), "%q", value)
	}
	require.False(t, plan.IsPaused(testScaledObject("", "", "").GetAnnotations()))
}

func TestChangesByUsersStay(t *testing.T) {
	env := takingOver(t, foreignAutoscalers()...)
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	f := fixture.Function()
	require.NoError(t, env.client.Get(t.Context(), fixture.Key(), f))
	fixture.Spec(f)["maxReplicas"] = int64(9)
	require.NoError(t, env.client.Update(t.Context(), f))
	object := testScaledObject("", "", "")
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	object.SetAnnotations(map[string]string{plan.AnnotationPaused: "true", "by": "user"})
	require.NoError(t, env.client.Update(t.Context(), object))
	theirs := otherAutoscaler("apps/v1", "StatefulSet", "resize-function")
	theirs.Spec.MaxReplicas = 77
	require.NoError(t, env.client.Create(t.Context(), theirs))
	env.events()

	require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
	for range 40 {
		if env.gone() {
			break
		}
		env.after(time.Second)
		_, _ = env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
		require.Equal(t, int64(3), env.replicas())
	}
	require.True(t, env.gone())
	require.Equal(t, int64(9), env.maxReplicas())
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	require.Equal(t, map[string]string{plan.AnnotationPaused: "true", "by": "user"}, object.GetAnnotations())
	found, err := env.find("theirs")
	require.NoError(t, err)
	require.Equal(t, int32(77), found.Spec.MaxReplicas)
	require.Contains(t, fmt.Sprint(env.events()), "maxReplicas 5: a user or another controller set it meanwhile")
}

func TestADeletedPolicyNeverHangs(t *testing.T) {
	forbidden := apierrors.NewForbidden(autoscalingv2.Resource("functions"), "resize", errors.New("needs patch"))
	tests := map[string]struct {
		spoil func(env *testEnv)
		event string
		most  int
	}{
		"the target is gone": {
			spoil: func(env *testEnv) { require.NoError(env.t, env.client.Delete(env.t.Context(), fixture.Function())) },
			event: "the target is gone", most: 3,
		},
		"the ScaledObject is gone": {
			spoil: func(env *testEnv) {
				require.NoError(env.t, env.client.Delete(env.t.Context(), testScaledObject("", "", "")))
			},
			event: "AutoscalerRestored", most: 3,
		},
		"a permission is missing": {
			spoil: func(env *testEnv) { env.patchFails = forbidden }, event: "manually",
			most: 3,
		},
		"the API server fails": {
			spoil: func(env *testEnv) { env.patchFails = errors.New("boom") }, event: "manually",
			most: maxCleanupAttempts + 2,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := takingOver(t, foreignAutoscalers()...)
			env.reconcile()
			env.until("our autoscaler", env.scaling)
			env.events()
			test.spoil(env)
			require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
			passes := 0
			for ; !env.gone() && passes < 100; passes++ {
				env.after(soon)
				_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
				require.NoError(t, err)
			}
			require.True(t, env.gone())
			require.LessOrEqual(t, passes, test.most)
			require.Contains(t, fmt.Sprint(env.events()), test.event)
		})
	}
}

func TestAFailedRestoreHidesNoMissingTarget(t *testing.T) {
	env := takingOver(t, foreignAutoscalers()...)
	env.reconcile()
	env.until("our autoscaler", env.scaling)
	require.NoError(t, env.client.Delete(t.Context(), fixture.Function()))
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.ConflictPolicy = v1alpha1.ConflictRefuse })
	env.patchFails = errors.New("boom")
	for range 3 {
		env.after(soon)
		_, _ = env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	}
	for name, want := range map[string]string{
		v1alpha1.ConditionReady: "False/TargetNotFound", v1alpha1.ConditionTargetFound: "False/TargetNotFound",
		v1alpha1.ConditionBacklogKnown: "Unknown/NotChecked", v1alpha1.ConditionAutoscalerApplied: "False/Restoring",
		v1alpha1.ConditionScalesWithoutRestart: "Unknown/NotChecked",
	} {
		status, _ := env.condition(name)
		require.Equal(t, want, status, name)
	}
	_, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Contains(t, message, "boom")
	require.Nil(t, env.policy().Status.DesiredReplicas)
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
	child := fixture.Function()
	child.SetName("re-other")
	fixture.Spec(child)["replicas"] = int64(6)
	env := newTestEnv(t, mesh, child)
	p := fixture.Policy()
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "re",
		Component: v1alpha1.MeshComponent{Kind: "Function", Name: "size"},
	}
	subject := plan.Subject{Policy: p, Target: &plan.Target{
		Scaling: plan.ByMesh, Ref: v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "re-size",
		},
	}}
	entries := func() []any {
		live := cluster.NewUnstructured(cluster.KindFunctionMesh)
		require.NoError(t, env.client.Get(t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: "re"}, live))
		list, _, err := unstructured.NestedSlice(live.Object, "spec", "functions")
		require.NoError(t, err)
		return list
	}
	other := map[string]any{"name": "other", "maxReplicas": int64(7), "replicas": int64(6)}
	require.NoError(t, env.reconciler.applier.suspender.setMaxReplicas(t.Context(), subject, new(int32(4)), nil))
	require.Empty(t, env.writes, "it is 5 by now")
	require.NoError(t, env.reconciler.applier.suspender.setMaxReplicas(t.Context(), subject, new(int32(5)), nil))
	require.Equal(t, []any{other, map[string]any{"name": "size", "replicas": int64(2)}}, entries())
	require.NoError(t, env.reconciler.applier.suspender.setMaxReplicas(t.Context(), subject, nil, new(int32(5))))
	require.Equal(t, []any{other, map[string]any{"name": "size", "replicas": int64(2), "maxReplicas": int64(5)}},
		entries())
	p.Spec.ScaleTargetRef.Component.Name = "gone"
	require.NoError(t, env.reconciler.applier.suspender.setMaxReplicas(t.Context(), subject, nil, new(int32(5))))
}
