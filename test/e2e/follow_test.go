// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitReason waits until conditions have these statuses and reasons at the same time, such as Ready=True/Scaling.
func awaitReason(t *testing.T, f *stage.Function, limit time.Duration,
	wanted ...string,
) (status v1alpha1.AutoscalingPolicyStatus) {
	t.Helper()
	await(t, f, fmt.Sprint("conditions ", wanted), limit, func(ctx context.Context) (bool, string, error) {
		p, err := f.Policy(ctx)
		if err != nil {
			return false, "", err
		}
		status = p.Status
		all := true
		var have []string
		for _, want := range wanted {
			name, _, _ := strings.Cut(want, "=")
			said := ""
			if c := meta.FindStatusCondition(status.Conditions, name); c != nil {
				said = fmt.Sprintf("%s=%s/%s", name, c.Status, c.Reason)
			}
			all, have = all && said == want, append(have, said)
		}
		return all, fmt.Sprint(have), nil
	})
	return status
}

func messageOf(s v1alpha1.AutoscalingPolicyStatus, name string) string {
	return meta.FindStatusCondition(s.Conditions, name).Message
}

// It stops the operator for all Functions, so it runs alone.
func TestNotFollowedIsToldWhileFunctionMeshIsStopped(t *testing.T) {
	const name, low, high = "unfollowed", 8, 132
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 25 * time.Millisecond, Objective: objective})
	addPolicy(t, newPolicy(name))
	rate := newDial(low)
	publish(t, f, rate.profile)
	awaitReason(t, f, patience, "Ready=True/Scaling", "ObjectiveMet=True/WithinObjective")
	awaitLearned(t, f)
	const entry = "unfollowed-entry"
	m := addMesh(t, "stopped", stage.FunctionConfig{Name: entry, ServiceTime: 25 * time.Millisecond})
	component := componentPolicy(m, m.Functions[0], entry)
	addPolicy(t, component)
	awaitReason(t, m.Functions[0], patience, "Ready=True/Scaling")

	scene.Mesh.Pause()
	t.Cleanup(scene.Mesh.Resume)
	rate.turn(high)
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minReplicas":2}}`))
	require.NoError(t, scene.Client.Patch(t.Context(), component, patch))
	awaitReplicas(t, f, 4, 20, patience) // the HPA does its part
	asked := time.Now()
	said := awaitReason(t, f, patience, "Ready=False/NotFollowed")
	took := time.Since(asked)
	t.Logf("NotFollowed %s after spec.replicas changed", took)
	require.Less(t, took, 45*time.Second)
	require.Contains(t, messageOf(said, v1alpha1.ConditionReady),
		"Function Mesh does not act on the change: is its operator running?")
	require.Equal(t, int32(1), *said.RunningReplicas, "what runs")
	require.GreaterOrEqual(t, *said.SpecReplicas, int32(4), "what is asked for")
	awaitEvent(t, name, v1alpha1.ReasonNotFollowed, "is its operator running?")
	said = awaitReason(t, m.Functions[0], patience, "Ready=False/NotFollowed")
	require.Contains(t, messageOf(said, v1alpha1.ConditionReady),
		"Function "+m.Functions[0].Name+" does not have the replicas of its entry in the FunctionMesh")
	awaitReason(t, f, 90*time.Second, "Ready=False/NotFollowed", "ObjectiveMet=False/NotFollowed")

	scene.Mesh.Resume()
	awaitReason(t, f, patience, "Ready=True/Scaling")
	awaitReason(t, m.Functions[0], patience, "Ready=True/Scaling")
	awaitEvent(t, name, v1alpha1.ReasonScaling, "Ready is no longer NotFollowed")
	awaitReason(t, f, patience, "Ready=True/Scaling", "ObjectiveMet=True/WithinObjective")
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
	said := awaitReason(t, f, 4*time.Minute, "Ready=False/NotFollowed")
	message := messageOf(said, v1alpha1.ConditionReady)
	require.Contains(t, message, "does not set the decided replicas (FailedUpdateScale)")
	require.Greater(t, *said.DesiredReplicas, *said.SpecReplicas)
	awaitReason(t, f, patience, "Ready=False/NotFollowed", "ObjectiveMet=False/NotFollowed")
}

func TestObjectiveMetNamesMaxReplicas(t *testing.T) {
	t.Parallel()
	const name = "too-few"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Objective: objective})
	p := newPolicy(name)
	p.Spec.MaxReplicas = 2
	addPolicy(t, p)
	publish(t, f, load.Constant(90)) // 25/s each
	said := awaitReason(t, f, patience, "Ready=True/Scaling", "ObjectiveMet=False/TooManyReplicas",
		"ScalingLimited=True/TooManyReplicas")
	require.Contains(t, messageOf(said, v1alpha1.ConditionReady),
		"messages wait longer than the latency objective (TooManyReplicas)")

	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"maxReplicas":20}}`))
	require.NoError(t, scene.Client.Patch(t.Context(), p, patch))
	awaitReason(t, f, 4*time.Minute, "Ready=True/Scaling", "ObjectiveMet=True/WithinObjective")
}
