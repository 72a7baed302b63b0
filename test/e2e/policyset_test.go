// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// selected is a label by which a set selects objects.
func selected(by string) map[string]string {
	return map[string]string{by + ".example.com/member": "yes"}
}

// addPolicySet creates a set and deletes it after the test.
func addPolicySet(t *testing.T, name string) *v1alpha1.AutoscalingPolicySet {
	t.Helper()
	set := &v1alpha1.AutoscalingPolicySet{ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name}}
	set.Spec.Selector.MatchLabels = selected(name)
	set.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"team": "media"}
	set.Spec.Template.Spec = newPolicy(name).Spec.ScalingSpec
	set.Spec.Template.Spec.MinReplicas = new(int32(2)) // so that quiet ones move too
	require.NoError(t, scene.Client.Create(t.Context(), set))
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(scene.Client.Delete(context.WithoutCancel(t.Context()), set)))
	})
	return set
}

// member adds a Function to the stage.
func member(t *testing.T, name string, labels map[string]string) *stage.Function {
	t.Helper()
	return addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 20 * time.Millisecond,
		Edit: func(object *unstructured.Unstructured) { object.SetLabels(labels) },
	})
}

// policyName is the name of the set's policy for a Function.
func policyName(setName, function string) string {
	return set.PolicyName(setName,
		v1alpha1.ScaleTargetRef{APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: function})
}

// componentPolicyName is the name of the set's policy for a Function of a FunctionMesh.
func componentPolicyName(setName, mesh, entry string) string {
	return set.PolicyName(setName, v1alpha1.ScaleTargetRef{
		Kind: "FunctionMesh", Name: mesh, Component: v1alpha1.MeshComponent{Kind: "Function", Name: entry},
	})
}

func setStatus(t *testing.T, name string) v1alpha1.AutoscalingPolicySetStatus {
	t.Helper()
	var set v1alpha1.AutoscalingPolicySet
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: name}, &set))
	return set.Status
}

// awaitCounts waits until that many targets match, have a policy, and are ready.
func awaitCounts(t *testing.T, set string, matched, governed int32) {
	t.Helper()
	want := fmt.Sprint(matched, governed, governed, "True")
	scene.Await(t, "the set to have matched, governed, ready "+want, func(context.Context) (bool, string, error) {
		status := setStatus(t, set)
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if ready == nil || status.Matched == nil {
			return false, "no status", nil
		}
		has := fmt.Sprint(*status.Matched, *status.Governed, *status.Ready, string(ready.Status))
		return has == want, has + ": " + ready.Message, nil
	})
}

// awaitNotReady waits until the set has exactly this object that it does not scale.
func awaitNotReady(t *testing.T, set string, want v1alpha1.PolicySetObject) {
	t.Helper()
	scene.Await(t, "the object that set "+set+" does not scale", func(context.Context) (bool, string, error) {
		has := setStatus(t, set).NotReady
		return reflect.DeepEqual([]v1alpha1.PolicySetObject{want}, has), fmt.Sprintf("%+v", has), nil
	})
}

// awaitGone waits until a policy and its HorizontalPodAutoscaler are deleted.
func awaitGone(t *testing.T, name string) {
	t.Helper()
	scene.AwaitGone(t, newPolicy(name))
	scene.AwaitGone(t, autoscalerNamed(plan.AutoscalerName(name)))
}

func specReplicas(t *testing.T, f *stage.Function) int64 {
	t.Helper()
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	return replicas.Spec
}

func TestPolicySetScalesEachFunctionByItself(t *testing.T) {
	t.Parallel()
	onStage(t)
	const name = "herd"
	busy, calm := member(t, "herd-busy", selected(name)), member(t, "herd-calm", selected(name))
	named, stray := member(t, "herd-named", selected(name)), member(t, "herd-stray", nil)
	addPolicy(t, newPolicy(named.Name)) // at least 1
	set := addPolicySet(t, name)
	publish(t, busy, load.Constant(150))

	busy.AwaitReplicas(t, 4, 20)
	calm.AwaitReplicas(t, 2, 2)
	awaitCounts(t, name, 3, 2)
	awaitNotReady(t, name, v1alpha1.PolicySetObject{
		Kind: mesh.KindFunction, Name: named.Name, Policy: named.Name, Reason: v1alpha1.ReasonNamedByPolicy,
		Message: "AutoscalingPolicy " + named.Name + " names it",
	})
	require.Equal(t, int64(1), specReplicas(t, named), "which its own policy scales")
	require.Equal(t, int64(1), specReplicas(t, stray), "which no policy scales")
	for _, f := range []*stage.Function{busy, calm} {
		var hpa autoscalingv2.HorizontalPodAutoscaler
		key := client.ObjectKey{Namespace: stage.Namespace, Name: plan.AutoscalerName(policyName(name, f.Name))}
		require.NoError(t, scene.Client.Get(t.Context(), key, &hpa))
		require.Equal(t, f.Name, hpa.Spec.ScaleTargetRef.Name)
	}
	err := scene.Client.Get(t.Context(),
		client.ObjectKey{Namespace: stage.Namespace, Name: policyName(name, named.Name)}, &v1alpha1.AutoscalingPolicy{})
	require.NoError(t, client.IgnoreNotFound(err))
	require.Error(t, err, "a policy that names the Function takes precedence")

	revertEdit(t, set, policyName(name, calm.Name))
	handOver(t, name, calm)
	relabel(t, calm.Object(), nil)
	awaitGone(t, policyName(name, calm.Name))
	awaitCounts(t, name, 2, 1)

	require.NoError(t, scene.Client.Delete(t.Context(), set))
	awaitGone(t, policyName(name, busy.Name))
	require.GreaterOrEqual(t, specReplicas(t, busy), int64(4))
	require.Equal(t, int64(2), specReplicas(t, calm))
}

// revertEdit edits a policy of the set, and waits until the controller restores the template.
func revertEdit(t *testing.T, set *v1alpha1.AutoscalingPolicySet, name string) {
	t.Helper()
	p := &v1alpha1.AutoscalingPolicy{}
	key := client.ObjectKey{Namespace: stage.Namespace, Name: name}
	require.NoError(t, scene.Client.Get(t.Context(), key, p))
	require.Equal(t, "media", p.Labels["team"])
	before := p.DeepCopy()
	p.Labels["team"], p.Spec.MaxReplicas = "sound", set.Spec.Template.Spec.MaxReplicas+1
	require.NoError(t, scene.Client.Patch(t.Context(), p, client.MergeFrom(before)))
	scene.Await(t, name+" to be as the template says", func(ctx context.Context) (bool, string, error) {
		err := scene.Client.Get(ctx, key, p)
		reverted := p.Labels["team"] == "media" && p.Spec.MaxReplicas == set.Spec.Template.Spec.MaxReplicas
		return reverted, fmt.Sprint(p.Labels, p.Spec.MaxReplicas), err
	})
}

// handOver creates a policy for the Function, which takes precedence over the set's, and deletes it.
func handOver(t *testing.T, set string, f *stage.Function) {
	t.Helper()
	own := newPolicy(f.Name)
	own.Spec.MinReplicas = new(int32(2))
	addPolicy(t, own)
	awaitGone(t, policyName(set, f.Name))
	f.AwaitConditions(t, "Ready=True/Scaling")
	require.NoError(t, scene.Client.Delete(t.Context(), own))
	awaitCounts(t, set, 3, 2)
	require.LessOrEqual(t, slices.Max(scene.Mesh.Desired(stage.Namespace, f.Name, time.Time{})), 2,
		"no jump when a Function changes hands")
}

// relabel gives an object other labels.
func relabel(t *testing.T, object *unstructured.Unstructured, labels map[string]string) {
	t.Helper()
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.DeepCopy()
	object.SetLabels(labels)
	require.NoError(t, scene.Client.Patch(t.Context(), object, client.MergeFrom(before)))
}

func TestPolicySetScalesTheComponentsOfAMesh(t *testing.T) {
	t.Parallel()
	onStage(t)
	const name = "weave"
	m := addMesh(t, name,
		stage.FunctionConfig{Name: "weave-spin", ServiceTime: 20 * time.Millisecond},
		stage.FunctionConfig{Name: "weave-dye", ServiceTime: 20 * time.Millisecond})
	spin, dye := m.Functions[0], m.Functions[1]
	own := componentPolicy(m, dye, "weave-dye") // at least 1
	relabel(t, m.Object(), selected(name))
	relabel(t, spin.Object(), selected(name)) // which is of a mesh that matches, and so is skipped
	set := addPolicySet(t, name)

	spin.AwaitReplicas(t, 2, 2)
	dye.AwaitReplicas(t, 2, 2)
	awaitCounts(t, name, 2, 2)

	addPolicy(t, own)
	awaitGone(t, componentPolicyName(name, m.Name, "weave-dye"))
	dye.AwaitReplicas(t, 1, 1)
	awaitCounts(t, name, 2, 1)
	awaitNotReady(t, name, v1alpha1.PolicySetObject{
		Kind: mesh.KindMesh, Name: m.Name, Policy: own.Name, Reason: v1alpha1.ReasonNamedByPolicy,
		Component: v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: "weave-dye"},
		Message:   "AutoscalingPolicy " + own.Name + " names it",
	})
	require.Equal(t, int64(2), specReplicas(t, spin))

	require.NoError(t, scene.Client.Delete(t.Context(), set))
	awaitGone(t, componentPolicyName(name, m.Name, "weave-spin"))
	require.Equal(t, int64(2), specReplicas(t, spin), "replicas stay")
}
