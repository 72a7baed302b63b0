// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// managedFields serves the managed fields of every object and counts the reads; fails is an error instead.
type managedFields struct {
	entries []metav1.ManagedFieldsEntry
	reads   int
	fails   error
}

// live serves the metadata of an object with managed fields, as an API server does, and counts the read.
func (env *testEnv) live(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
	options ...client.GetOption,
) error {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	switch {
	case !ok && env.late != nil:
		return env.late.Get(ctx, key, object, options...)
	case !ok:
		return c.Get(ctx, key, object, options...)
	}
	env.managed.reads++
	if _, bounded := ctx.Deadline(); !bounded {
		return context.DeadlineExceeded
	}
	if env.managed.fails != nil {
		return env.managed.fails
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, key, found, options...); err != nil {
		return err
	}
	metadata.SetName(found.GetName())
	metadata.SetManagedFields(env.managed.entries)
	return nil
}

// writtenBy is a manager that owns a field of the spec, without a time, optionally of a subresource.
func writtenBy(manager, subresource, field string) []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, Subresource: subresource, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:` + field + `":{}}}`),
	}}
}

const kubectlScaled = "was written by kubectl scale (manager kubectl, Update, subresource scale)"

func TestKubectlScaleIsNamed(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(300)
	env.reconcile()
	require.Zero(t, env.managed.reads, "nothing changed")
	env.events()

	env.managed.entries = writtenBy("kubectl", "scale", "replicas")
	env.scaleManually(7)
	env.after(time.Second)
	env.reconcile()
	require.Equal(t, []string{
		"Normal ReplicasChangedExternally spec.replicas 3 -> 7 " + kubectlScaled,
		"Normal DesiredReplicasChanged 3 -> 7: 300 backlog / 100 per replica = 3.00; " +
			"7 replicas were written by kubectl scale 0s ago, and are kept for the stabilization window of 31s",
	}, env.events())
	hold := env.policy().Status.Decision.Hold
	require.NotNil(t, hold)
	require.Contains(t, hold.Message, "written by kubectl scale")

	for range 3 {
		env.after(testInterval)
		env.answer(300, 10_000)
		env.reconcile()
	}
	require.Equal(t, 1, env.managed.reads, "it is looked up at the change alone")
	require.Empty(t, env.events())
}

func TestOneTargetIsLookedUpOnceInTenSeconds(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(300)
	env.managed.entries = writtenBy("kubectl", "scale", "replicas")
	for replicas := int64(4); replicas < 10; replicas++ {
		env.scaleManually(replicas)
		env.after(time.Second)
		env.reconcile()
	}
	require.Equal(t, 1, env.managed.reads)
	env.events()
	env.after(testInterval)
	env.reconcile()
	require.Equal(t, 2, env.managed.reads)
	require.Equal(t, []string{"Normal ReplicasChangedExternally spec.replicas 4 -> 9 " + kubectlScaled}, env.events())
}

func TestWhatTheControllerAndItsAutoscalerWriteIsNotNamed(t *testing.T) {
	tests := map[string]struct {
		policy   *v1alpha1.AutoscalingPolicy
		manager  string
		replicas int64
		lookUps  int
	}{
		"the decision":                      {fixture.Policy(), "kubectl", 7, 0},
		"an earlier decision, by the HPA":   {fixture.Policy(), "kube-controller-manager", 5, 1},
		"an earlier one, by the controller": {directPolicy(), "pulsar-autoscaler", 5, 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), test.policy, fixture.ConfigMap())
			env.firstDecision(700)
			env.reconcile()
			env.events()
			env.managed.entries = writtenBy(test.manager, "scale", "replicas")
			env.scaleManually(test.replicas)
			env.after(time.Second)
			env.reconcile()
			env.reconcile()
			require.Equal(t, test.lookUps, env.managed.reads)
			require.Empty(t, env.events())
		})
	}
}

func TestAWriterThatCannotBeReadIsReportedAsUnknown(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "functions"}, "resize", nil)
	tests := map[string]struct {
		fails error
		want  string
	}{
		"a right that is missing": {forbidden, "grant the adapter get on objects of kind Function of " +
			"compute.functionmesh.io/v1alpha1: "},
		"an API server that hangs":        {context.DeadlineExceeded, "reading the managed fields of Function resize: "},
		"managed fields that are missing": {nil, "no field manager owns the field spec.replicas"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
			env.firstDecision(300)
			env.events()
			env.managed.fails = test.fails
			env.scaleManually(7)
			env.after(time.Second)
			env.reconcile()
			env.after(testInterval)
			env.reconcile()
			require.Equal(t, 1, env.managed.reads, "a failed one is not repeated")
			all := env.events()
			require.Len(t, all, 2)
			require.Contains(t, all[0],
				"Normal ReplicasChangedExternally spec.replicas 3 -> 7 was written by an unknown writer: "+test.want)
			require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas, "the decision continues")
		})
	}
}

func TestAChangeIsNamedAfterARestart(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(300)
	env.events()
	env.managed.entries = writtenBy("argocd-controller", "", "replicas")
	env.scaleManually(7)
	env.store.Untrack(owner(fixture.Key()))
	env.restart()
	env.reconcile()
	require.Zero(t, env.managed.reads, "nothing is decided before the first answer")
	env.after(testInterval)
	env.answer(300, 10_000)
	env.reconcile()
	require.Contains(t, env.events()[0], "spec.replicas 3 -> 7 was written by Argo CD (manager argocd-controller, Update): "+
		"let it ignore spec.replicas")
}

func TestTheWriterOfAFunctionMeshIsNamed(t *testing.T) {
	env := newTestEnv(t, fixture.Mesh(), fixture.MeshChild(), fixture.ComponentPolicy(), fixture.ConfigMap())
	env.firstDecision(300)
	env.events()
	env.managed.entries = writtenBy("kubectl-edit", "", "functions")
	env.editMesh(func(mesh *unstructured.Unstructured) { fixture.EntryAt(mesh, 1)["replicas"] = int64(7) })
	env.after(time.Second)
	env.reconcile()
	require.Contains(t, env.events(), "Normal ReplicasChangedExternally spec.functions[resize].replicas 3 -> 7 was written "+
		"by kubectl edit (manager kubectl-edit, Update)")
}
