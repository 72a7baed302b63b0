// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// cachesLag is by how many passes late caches lag: longer than a deleted policy waits after it has restored.
const cachesLag = 4

// usersPolicy has the target of fixture.Policy.
func usersPolicy(conflicts v1alpha1.ConflictPolicy) *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Name, p.UID = "users", "uid-users"
	p.Spec.ConflictPolicy = conflicts
	return p
}

// TestNothingIsRestoredNextToAnotherPolicy moves a target from a policy of an AutoscalingPolicySet, which took over
// Function Mesh's autoscaler, to a user's policy, with reconciles in any order. Where it is deleted last, the cache is
// late.
func TestNothingIsRestoredNextToAnotherPolicy(t *testing.T) {
	const steps = 4
	for order := range 1 << steps {
		for deleted, lags := range map[int]bool{0: false, 1: false, 2: false, 3: true} {
			for _, conflicts := range []v1alpha1.ConflictPolicy{v1alpha1.ConflictRefuse, v1alpha1.ConflictTakeOver} {
				t.Run(fmt.Sprintf("order %04b, deleted before pass %d, %s", order, deleted, conflicts), func(t *testing.T) {
					env := takingOver(t)
					p := env.policy()
					fixture.SetOwner(p, v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicySet, "all")
					require.NoError(t, env.client.Update(t.Context(), p))
					env.reconcile()
					env.until("our autoscaler", env.scaling)
					require.NoError(t, env.client.Create(t.Context(), usersPolicy(conflicts)))
					env.lags = lags
					for step := range 40 {
						if step == deleted {
							require.NoError(t, env.client.Delete(t.Context(), fixture.Policy()))
						}
						key := fixture.Key()
						if step >= steps && step%2 == 0 || step < steps && order&(1<<step) != 0 {
							key.Name = "users"
						}
						env.passOf(key)
					}
					require.True(t, env.gone())
					users := env.autoscalerOf("users")
					if conflicts == v1alpha1.ConflictRefuse {
						require.Nil(t, users)
						require.Equal(t, int64(5), env.maxReplicas(), "it is restored, and the user's policy says so")
						return
					}
					require.NotNil(t, users)
					require.Nil(t, env.maxReplicas())
					require.NoError(t, env.client.Delete(t.Context(), usersPolicy(conflicts)))
					passes := 8
					if lags {
						passes += 2 * cachesLag
					}
					for range passes {
						env.passOf(types.NamespacedName{Namespace: fixture.Namespace, Name: "users"})
					}
					require.Equal(t, int64(5), env.maxReplicas(), "the user's policy took it over from Function Mesh, too")
				})
			}
		}
	}
}

func (env *testEnv) autoscalerOf(name string) client.Object {
	env.t.Helper()
	hpa, err := env.find(plan.AutoscalerName(name))
	require.NoError(env.t, err)
	if hpa == nil {
		return nil
	}
	return hpa
}

// passOf reconciles a policy and checks that no two autoscalers scale the target.
func (env *testEnv) passOf(key types.NamespacedName) {
	env.t.Helper()
	env.functionMesh()
	env.after(time.Second)
	env.answer(300, 10_000)
	if env.lags {
		env.before = append(env.before, env.copied())
		env.late = env.before[max(0, len(env.before)-1-cachesLag)]
	}
	_, _ = env.reconciler.Reconcile(env.t.Context(), reconcile.Request{NamespacedName: key})
	env.late = nil
	env.functionMesh()
	var there []string
	for _, name := range []string{
		"resize-function", "theirs", plan.AutoscalerName("resize"),
		plan.AutoscalerName("users"),
	} {
		hpa, err := env.find(name)
		require.NoError(env.t, err)
		if hpa != nil {
			there = append(there, name)
		}
	}
	require.LessOrEqual(env.t, len(there), 1, "%v after %s", there, key.Name)
}
