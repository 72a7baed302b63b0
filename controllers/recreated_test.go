// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"

	"github.com/stretchr/testify/require"
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
