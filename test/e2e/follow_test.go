// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// It stops the operator for all Functions, so it runs alone.
func TestNotFollowedIsToldWhileFunctionMeshIsStopped(t *testing.T) {
	const name, low, high = "unfollowed", 8, 132
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 25 * time.Millisecond, Objective: objective})
	addPolicy(t, newPolicy(name))
	rate := newDial(low)
	publish(t, f, rate.profile)
	f.AwaitConditions(t, "Ready=True/Scaling", "ObjectiveMet=True/WithinObjective")
	awaitLearned(t, f)
	const entry = "unfollowed-entry"
	m := addMesh(t, "stopped", stage.FunctionConfig{Name: entry, ServiceTime: 25 * time.Millisecond})
	component := componentPolicy(m, m.Functions[0], entry)
	addPolicy(t, component)
	m.Functions[0].AwaitConditions(t, "Ready=True/Scaling")

	scene.Mesh.Pause()
	t.Cleanup(scene.Mesh.Resume)
	rate.turn(high)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReplicas":2}}`))
	require.NoError(t, scene.Client.Patch(t.Context(), component, patch))
	f.AwaitReplicas(t, 4, 20) // the HPA does its part
	asked := time.Now()
	said := f.AwaitConditions(t, "Ready=False/NotFollowed")
	t.Logf("NotFollowed %s after spec.replicas changed", time.Since(asked))
	require.Contains(t, said, "Function Mesh does not act on the change: is its operator running?")
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Equal(t, int32(1), *p.Status.RunningReplicas, "what runs")
	require.GreaterOrEqual(t, *p.Status.SpecReplicas, int32(4), "what is asked for")
	awaitEvent(t, name, v1alpha1.ReasonNotFollowed, "is its operator running?")
	said = m.Functions[0].AwaitConditions(t, "Ready=False/NotFollowed")
	require.Contains(t, said,
		"Function "+m.Functions[0].Name+" does not have the replicas of its entry in the FunctionMesh")
	f.AwaitConditions(t, "Ready=False/NotFollowed", "ObjectiveMet=False/NotFollowed")

	scene.Mesh.Resume()
	f.AwaitConditions(t, "Ready=True/Scaling")
	m.Functions[0].AwaitConditions(t, "Ready=True/Scaling")
	awaitEvent(t, name, v1alpha1.ReasonScaling, "Ready is no longer NotFollowed")
	f.AwaitConditions(t, "Ready=True/Scaling", "ObjectiveMet=True/WithinObjective")
	awaitEvent(t, name, v1alpha1.ReasonWithinObjective, "ObjectiveMet is no longer ")
}

// refuseScaling makes the API server reject writes of a Function's scale subresource until the test ends.
func refuseScaling(t *testing.T, name string) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-scaling-" + name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{name},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{mesh.GroupVersion().Group}, APIVersions: []string{"*"},
						Resources: []string{"functions/scale"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "scaling is refused"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		create(t, object)
	}
}

func TestNotFollowedIsToldOfAnHPAThatMayNotScale(t *testing.T) {
	t.Parallel()
	const name = "unscaled"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Objective: objective})
	refuseScaling(t, name)
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(60)) // 25/s each
	said := f.AwaitConditions(t, "Ready=False/NotFollowed")
	require.Contains(t, said, "does not set the decided replicas (FailedUpdateScale)")
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Greater(t, *p.Status.DesiredReplicas, *p.Status.SpecReplicas)
	f.AwaitConditions(t, "Ready=False/NotFollowed", "ObjectiveMet=False/NotFollowed")
}

func TestObjectiveMetNamesMaxReplicas(t *testing.T) {
	t.Parallel()
	const name = "too-few"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Objective: objective})
	p := newPolicy(name)
	p.Spec.MaxReplicas = 2
	addPolicy(t, p)
	publish(t, f, load.Constant(90)) // 25/s each
	said := f.AwaitConditions(t, "Ready=True/Scaling", "ObjectiveMet=False/TooManyReplicas",
		"ScalingLimited=True/TooManyReplicas")
	require.Contains(t, said, "messages wait longer than the latency objective (TooManyReplicas)")

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxReplicas":20}}`))
	require.NoError(t, scene.Client.Patch(t.Context(), p, patch))
	f.AwaitConditions(t, "Ready=True/Scaling", "ObjectiveMet=True/WithinObjective")
}
