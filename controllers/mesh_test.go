// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// replicasInMesh returns the replicas of each entry by name.
func (env *testEnv) replicasInMesh() map[string]any {
	env.t.Helper()
	mesh := cluster.NewUnstructured(cluster.KindFunctionMesh)
	require.NoError(
		env.t,
		env.client.Get(env.t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: "etl"}, mesh),
	)
	found := map[string]any{}
	for i := range fixture.Entries(mesh) {
		found[fixture.EntryAt(mesh, i)["name"].(string)] = fixture.EntryAt(mesh, i)["replicas"]
	}
	return found
}

// editMesh changes the FunctionMesh like a user.
func (env *testEnv) editMesh(change func(mesh *unstructured.Unstructured)) {
	env.t.Helper()
	mesh := cluster.NewUnstructured(cluster.KindFunctionMesh)
	require.NoError(
		env.t,
		env.client.Get(env.t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: "etl"}, mesh),
	)
	change(mesh)
	require.NoError(env.t, env.client.Update(env.t.Context(), mesh))
}

func TestAComponentIsFoundByItsEntry(t *testing.T) {
	env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
	found, err := env.reconciler.config.Targets.Finder.Find(t.Context(), fixture.Namespace, fixture.ComponentPolicy().Spec)
	require.NoError(t, err)
	require.NotNil(t, found)
	subscription := backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in").WithPatterns()
	subscription.Workload = backlog.Object{Kind: "Function", Namespace: "media", Name: "etl-resize"}
	require.Equal(t, plan.Target{
		Ref: v1alpha1.ScaleTargetRef{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function",
			Name: "etl-resize",
		},
		Scaling: plan.ByMesh,
		Scaled: []v1alpha1.ScaleTargetRef{
			{APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "etl-resize"},
			{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "etl-resize-function"},
		},
		Replicas: new(int32(3)), Subscription: subscription, SubscriptionType: backlog.Shared,
		Component: "public/default/resize", Least: 1,
	}, *found)
}

func TestProblemsOfAComponentBecomeConditions(t *testing.T) {
	leftAlone := map[string]string{"compute.functionmesh.io/managed": "false"}
	tests := map[string]struct {
		change  func(mesh, child *unstructured.Unstructured)
		status  string
		message string
	}{
		"the mesh does not exist": {
			func(mesh, _ *unstructured.Unstructured) { mesh.SetName("other") },
			"False/TargetNotFound", "Function resize of FunctionMesh etl does not exist in namespace media",
		},
		"the entry does not exist": {
			func(mesh, _ *unstructured.Unstructured) {
				fixture.Spec(mesh)["functions"] = []any{fixture.Entry("tag"), fixture.Entry("crop")}
			},
			"False/TargetInvalid", "FunctionMesh etl has no entry resize in spec.functions, which has tag, crop: add it",
		},
		"there are many entries": {
			func(mesh, _ *unstructured.Unstructured) {
				fixture.Spec(mesh)["functions"] = []any{
					fixture.Entry("a"), fixture.Entry("b"), fixture.Entry("c"), fixture.Entry("d"), fixture.Entry("e"),
					fixture.Entry("f"),
				}
			},
			"False/TargetInvalid", "which has a, b, c, d, e, and 1 more",
		},
		"an entry of another kind has the name": {
			func(mesh, _ *unstructured.Unstructured) {
				fixture.Spec(mesh)["sinks"] = fixture.Spec(mesh)["functions"]
				delete(fixture.Spec(mesh), "functions")
			},
			"False/TargetInvalid", "FunctionMesh etl has no entry resize in spec.functions, which is empty",
		},
		"the entry exists twice": {
			func(mesh, _ *unstructured.Unstructured) {
				fixture.Spec(mesh)["functions"] = []any{fixture.Entry("resize"), fixture.Entry("tag"), fixture.Entry("resize")}
			},
			"False/TargetInvalid",
			"FunctionMesh etl has two entries resize in spec.functions, which share one Function: rename one of them",
		},
		"the entry has no input": {
			func(mesh, _ *unstructured.Unstructured) { delete(fixture.EntryAt(mesh, 1), "input") },
			"False/TargetInvalid", "Function resize of FunctionMesh etl, in its entry there: function public/default/resize " +
				"has no " +
				"input topics",
		},
		"the entry is invalid": {
			func(mesh, _ *unstructured.Unstructured) { fixture.EntryAt(mesh, 1)["input"] = "in" },
			"False/TargetInvalid", "Function resize of FunctionMesh etl, in its entry there: decoding Function",
		},
		"Function Mesh ignores the mesh": {
			func(mesh, _ *unstructured.Unstructured) { mesh.SetAnnotations(leftAlone) },
			"False/Unmanaged", "FunctionMesh etl has the annotation",
		},
		"Function Mesh ignores the child": {
			func(_, child *unstructured.Unstructured) { child.SetAnnotations(leftAlone) },
			"False/Unmanaged", "Function etl-resize has the annotation",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mesh, child := fixture.Mesh(), fixture.MeshChild()
			test.change(mesh, child)
			env := newTestEnv(t, mesh, child, fixture.ComponentPolicy(), fixture.ConfigMap())
			require.Equal(t, []string{"patch status"}, env.reconcile())
			status, message := env.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Empty(t, env.reconcile(), "a second reconcile of the same objects writes nothing")
		})
	}
}

func TestAComponentWithoutItsKindIsNotInstalled(t *testing.T) {
	env := newTestEnv(t, fixture.ComponentPolicy())
	env.installed = false
	env.reconcile()
	_, message := env.condition(v1alpha1.ConditionTargetFound)
	require.Contains(t, message, "kind FunctionMesh of compute.functionmesh.io/v1alpha1 is not installed")
}

func TestASourceOfAMeshNeverGoesToZero(t *testing.T) {
	mesh, p := fixture.Mesh(), fixture.ComponentPolicy()
	entry := fixture.Entry("resize")
	entry["batchSourceConfig"] = map[string]any{"discoveryTriggererClassName": "x"}
	fixture.Spec(mesh)["sources"] = []any{entry}
	p.Spec.ScaleTargetRef.Component.Kind = v1alpha1.WorkloadSource
	env := newTestEnv(t, mesh, fixture.ConfigMap())
	found, err := env.reconciler.config.Targets.Finder.Find(t.Context(), fixture.Namespace, p.Spec)
	require.NoError(t, err)
	require.True(t, found.NeverZero)
	require.Equal(t, "BatchSourceExecutor-public/default/resize", found.Subscription.Name)
}

func TestAutoscalersOfAChildConflictWithItsComponent(t *testing.T) {
	for name, other := range map[string][3]string{
		"on the child":       {"compute.functionmesh.io/v1alpha1", "Function", "etl-resize"},
		"on its StatefulSet": {"apps/v1", "StatefulSet", "etl-resize-function"},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap(),
				otherAutoscaler(other[0], other[1], other[2]))
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, "False/ConflictingAutoscaler", status)
			require.Contains(t, message, "theirs scales "+other[1]+" "+other[2])
		})
	}
	t.Run("by Function Mesh", func(t *testing.T) {
		mesh := fixture.Mesh()
		fixture.EntryAt(mesh, 1)["maxReplicas"] = int64(5)
		env := newTestEnv(t, mesh, fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
		env.reconcile()
		status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
		require.Equal(t, "False/FunctionHasOwnAutoscaler", status)
		require.Contains(t, message, "remove maxReplicas, then delete HorizontalPodAutoscaler etl-resize-function")
	})
}

func TestAComponentIsScaledByItsEntryInTheMesh(t *testing.T) {
	env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.Equal(t, int32(3), *env.policy().Status.SpecReplicas)
	env.answer(700, 10_000)
	require.Equal(t, []string{"patch *unstructured.Unstructured", "patch status"}, env.reconcile())
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
	require.Equal(t, v1alpha1.ActuatorStatus{
		Type: v1alpha1.ActuatorDirect, Reason: "a component of a FunctionMesh has no scale subresource",
	}, *env.policy().Status.Actuator)
	require.Nil(t, env.autoscaler())
	require.Equal(t, map[string]any{"tag": int64(3), "resize": int64(7)}, env.replicasInMesh())
	require.Equal(t, []string{"patch status"}, env.reconcile())
	require.Equal(t, int32(7), *env.policy().Status.SpecReplicas)
	require.Empty(t, env.reconcile())
}

// behind serves an older FunctionMesh than the API server has.
type behind struct {
	client.Reader
	mesh *unstructured.Unstructured
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if c, ok := into.(*target.Cached); ok && c.Kind == cluster.KindFunctionMesh {
		*c = *target.Decode(b.mesh)
		return nil
	}
	return b.Reader.Get(ctx, key, into, options...)
}

func TestAMeshThatChangedMeanwhileIsTriedAgain(t *testing.T) {
	p := fixture.ComponentPolicy()
	p.Spec.Actuator = v1alpha1.ActuatorDirect
	env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), p, fixture.ConfigMap())
	env.reconcile()
	env.answer(700, 10_000)
	env.editMesh(func(mesh *unstructured.Unstructured) {
		fixture.Spec(mesh)["functions"] = []any{fixture.Entry("resize"), fixture.Entry("tag")}
	})
	env.configure = func(c *target.Config) { c.Workloads = behind{env.client, fixture.Mesh()} }
	env.restart()
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err,
		"writing replicas of spec.functions[1] of FunctionMesh etl, which may have changed meanwhile")
	require.Equal(t, map[string]any{"tag": int64(3), "resize": int64(3)}, env.replicasInMesh(),
		"the wrong one is never written")
	_, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Contains(t, message, "may have changed meanwhile")

	env.configure = nil
	env.restart()
	env.reconcile()
	require.Equal(t, map[string]any{"tag": int64(3), "resize": int64(7)}, env.replicasInMesh())
}

func TestAForbiddenPatchNamesTheValueThatGrantsIt(t *testing.T) {
	tests := map[string]struct {
		env          func(t *testing.T) *testEnv
		want, grants string
	}{
		"replicas of a component": {
			env: func(t *testing.T) *testEnv {
				t.Helper()
				return newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
			},
			want:   "Unknown/ScaleFailed",
			grants: ": set rbac.functionMeshes=true of the chart, or apply deploy/rbac/functionmeshes.yaml",
		},
		"maxReplicas of a component": {
			env: func(t *testing.T) *testEnv {
				t.Helper()
				mesh, p := fixture.Mesh(), fixture.ComponentPolicy()
				fixture.EntryAt(mesh, 1)["maxReplicas"] = int64(5)
				p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
				return newTestEnv(t, mesh, fixture.MeshChild(), p, fixture.ConfigMap())
			},
			want:   "False/TakeOverFailed",
			grants: ": set rbac.functionMeshes=true of the chart, or apply deploy/rbac/functionmeshes.yaml",
		},
		"maxReplicas of a Function": {
			env:    func(t *testing.T) *testEnv { t.Helper(); return takingOver(t) },
			want:   "False/TakeOverFailed",
			grants: ": set rbac.takeOver=true of the chart, or apply deploy/rbac/takeover.yaml",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := test.env(t)
			env.patchFails = apierrors.NewForbidden(schema.GroupResource{Resource: "x"}, "y", nil)
			for range 2 {
				env.answer(700, 10_000)
				_, _ = env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
			}
			status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
			require.Equal(t, test.want, status, message)
			require.Contains(t, message, test.grants)
		})
	}
}

func TestThroughTheMeshOnlyADifferenceIsWritten(t *testing.T) {
	mesh := fixture.Mesh()
	delete(fixture.EntryAt(mesh, 0), "replicas")
	p := fixture.ComponentPolicy()
	env := newTestEnv(t, mesh, p)
	a := env.reconciler.applier
	require.NoError(t, a.scaleEntry(t.Context(), plan.Subject{Policy: p}, 3))
	require.Empty(t, env.writes)
	p.Spec.ScaleTargetRef.Component.Name = "tag"
	require.NoError(t, a.scaleEntry(t.Context(), plan.Subject{Policy: p}, 4), "of an entry that has none")
	require.Equal(t, map[string]any{"tag": int64(4), "resize": int64(3)}, env.replicasInMesh())
	p.Spec.ScaleTargetRef.Component.Name = "gone"
	require.ErrorIs(t, a.scaleEntry(t.Context(), plan.Subject{Policy: p}, 4), errEntryGone)
	p.Spec.ScaleTargetRef.Name = "gone"
	require.ErrorIs(t, a.scaleEntry(t.Context(), plan.Subject{Policy: p}, 4), errEntryGone)
}

// autoscaledMesh has sources that Function Mesh's own autoscalers scale, and their children at 6; missing has none.
func autoscaledMesh(observed int64) []client.Object {
	mesh := meshAt(3, 3)
	mesh.SetGeneration(2)
	mesh.Object["status"] = map[string]any{"observedGeneration": observed}
	fixture.Spec(mesh)["sources"] = []any{
		map[string]any{"name": "drifted", "replicas": int64(2), "maxReplicas": int64(9)},
		map[string]any{"name": "unset", "maxReplicas": int64(9)},
		map[string]any{"name": "equal", "minReplicas": int64(6), "maxReplicas": int64(9)},
		map[string]any{"name": "missing", "replicas": int64(2), "maxReplicas": int64(9)},
		map[string]any{"name": "fixed", "replicas": int64(2)},
	}
	objects := []client.Object{
		mesh, childAt("tag", 3), childAt("resize", 3), fixture.ComponentPolicy(), fixture.ConfigMap(),
	}
	for _, name := range []string{"drifted", "unset", "equal", "fixed"} {
		child := fixture.Workload("Source")
		child.SetName("etl-" + name)
		fixture.Spec(child)["replicas"] = int64(6)
		objects = append(objects, child)
	}
	return objects
}

// TestComponentsThatFunctionMeshScalesKeepTheirReplicas: each new generation of a mesh sets all components to the
// replicas of their entries.
func TestComponentsThatFunctionMeshScalesKeepTheirReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		observed int64
		want     []any
	}{
		"the mesh is up to date":         {2, []any{int64(6), int64(6), nil, int64(2), int64(2)}},
		"a change is not yet acted upon": {1, []any{int64(2), nil, nil, int64(2), int64(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, autoscaledMesh(test.observed)...)
			env.firstDecision(700)
			require.Equal(t, int64(7), env.replicasInMesh()["resize"])
			mesh := fixture.Mesh()
			require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(mesh), mesh))
			var replicas []any
			sources, _, err := unstructured.NestedSlice(mesh.Object, "spec", "sources")
			require.NoError(t, err)
			for _, source := range sources {
				replicas = append(replicas, source.(map[string]any)["replicas"])
			}
			require.Equal(t, test.want, replicas)
		})
	}
}

func TestPodsOfAComponentAreThoseOfItsChild(t *testing.T) {
	env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
	health := &askedHealth{}
	env.pods = health
	env.restart()
	env.firstDecision(0)
	require.Equal(t, "Function/media/etl-resize", health.workload.String())
}

type askedHealth struct{ workload backlog.Object }

func (h *askedHealth) Selected(namespace, selector string) (policy.Pods, error) {
	return h.Health(backlog.Object{Namespace: namespace, Name: selector})
}

func (h *askedHealth) Health(workload backlog.Object) (policy.Pods, error) {
	h.workload = workload
	return policy.Pods{}, nil
}

func TestEventsOfAMeshEnqueueThePoliciesOfItsComponents(t *testing.T) {
	env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy())
	set := cluster.NewUnstructured(cluster.KindStatefulSet)
	set.SetName("etl-resize-function")
	for name, object := range map[string]*unstructured.Unstructured{
		"the mesh": fixture.Mesh(), "the child": fixture.MeshChild(),
		"its StatefulSet": set,
	} {
		t.Run(name, func(t *testing.T) {
			found := policiesOf(t.Context(), env.client, fixture.Namespace, concerns(target.Decode(object)))
			require.Equal(t, []reconcile.Request{{NamespacedName: fixture.Key()}}, found)
		})
	}
}
