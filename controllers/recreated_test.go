// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// recreated reports whether the next decision treats the target as a new object.
func (env *testEnv) recreated() bool {
	env.t.Helper()
	p := env.policy()
	observed, err := env.reconciler.observe(env.t.Context(), p, env.reconciler.memories.of(p, env.now))
	require.NoError(env.t, err)
	require.NotNil(env.t, observed.Target)
	return plan.Input(observed).Recreated
}

func TestATargetOfEachKindIsNoticedWhenItIsRecreated(t *testing.T) {
	named := func(kind string) *v1alpha1.AutoscalingPolicy {
		p := fixture.Policy()
		p.Spec.ScaleTargetRef.Kind = kind
		return p
	}
	for name, test := range map[string]struct {
		target *unstructured.Unstructured
		policy *v1alpha1.AutoscalingPolicy
		others []client.Object
	}{
		"Function":              {fixture.Function(), fixture.Policy(), nil},
		"Sink":                  {fixture.Workload("Sink"), named("Sink"), nil},
		"child of FunctionMesh": {fixture.MeshChild(), fixture.ComponentPolicy(), []client.Object{fixture.Mesh()}},
		"Deployment":            {fixture.Deployment(), deploymentPolicy(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			test.target.SetUID("first")
			env := newTestEnv(t, append(test.others, test.target, test.policy, fixture.ConfigMap())...)
			env.firstDecision(700)
			require.False(t, env.recreated())
			require.NoError(t, env.client.Delete(t.Context(), test.target))
			env.after(testInterval)
			env.answer(700, 10_000)
			env.reconcile() // the entry of a FunctionMesh is decided on without its child
			again := test.target.DeepCopy()
			again.SetUID("second")
			again.SetResourceVersion("")
			require.NoError(t, env.client.Create(t.Context(), again))
			require.True(t, env.recreated())
			env.reconcile()
			require.False(t, env.recreated(), "once")
		})
	}
}

// TestARecreatedAutoscalerIsTakenOverAsItIs: the cache may still have the one before.
func TestARecreatedAutoscalerIsTakenOverAsItIs(t *testing.T) {
	theirs, p := otherAutoscaler("apps/v1", "StatefulSet", "resize-function"), fixture.Policy()
	theirs.UID, p.Spec.ConflictPolicy = "first", v1alpha1.ConflictTakeOver
	env := newTestEnv(t, theirs, fixture.Function(), p, fixture.ConfigMap())
	env.reconcile()
	before := env.copied()
	require.NoError(t, env.client.Delete(t.Context(), theirs))
	theirs.UID, theirs.ResourceVersion, theirs.Spec.MaxReplicas = "second", "", 7
	require.NoError(t, env.client.Create(t.Context(), theirs))
	env.late = before
	env.pass()
	env.late = nil
	require.Contains(t, env.writes, "delete theirs")
	live, err := env.find("theirs")
	require.NoError(t, err)
	require.NotNil(t, live)
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "False/TakeOverFailed", status, message)

	env.until("our autoscaler", env.scaling)
	taken := env.policy().Status.TakenOver.HorizontalPodAutoscalers
	require.Len(t, taken, 1)
	require.Contains(t, fmt.Sprint(taken), `"maxReplicas":7`)
}

// TestNoRecreatedObjectIsDeletedAsOurs: the cache may still have ours, which a user has replaced.
func TestNoRecreatedObjectIsDeletedAsOurs(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	ours, live := env.policy(), env.autoscaler()
	live.UID = "before"
	_, err := env.reconciler.applier.removeAutoscaler(t.Context(), ours, live)
	require.True(t, apierrors.IsConflict(err), err)
	require.NotNil(t, env.autoscaler())

	env = newKEDAEnv(t, fixture.Function(), kedaPolicy())
	env.firstDecision(700)
	object := env.scaledObject()
	known := plan.Autoscalers{ScaledObject: &plan.LiveScaledObject{ObjectMeta: metav1.ObjectMeta{
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: "before", OwnerReferences: object.GetOwnerReferences(),
	}}}
	_, err = env.reconciler.applier.removeScaledObject(t.Context(), plan.Subject{Policy: env.policy()}, known)
	require.True(t, apierrors.IsConflict(err), err)
	require.NotNil(t, env.scaledObject())
}
