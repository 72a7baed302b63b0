// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

func TestDeploymentFollowsTheLoad(t *testing.T) {
	t.Parallel()
	follow(t, stage.FunctionConfig{
		Name: "orders", Deployment: true, ServiceTime: 25 * time.Millisecond, StartDelay: 6 * time.Second,
		ReceiverQueueSize: 10,
	}, 8, 132)
}

func TestDeploymentGoesToZeroAndBackDirectly(t *testing.T) {
	t.Parallel()
	const name = "invoices"
	f := addFunction(t, stage.FunctionConfig{
		Name: name, Deployment: true, ServiceTime: 200 * time.Millisecond, Replicas: 2, Objective: objective,
		ReceiverQueueSize: 10,
	})
	p := f.Consumes(idlePolicy(name, v1alpha1.ActuatorDirect, 3))
	p.Spec.LatencyObjective.Duration = 10 * time.Second
	addPolicy(t, p)
	require.NoError(t, f.PublishBurst(t.Context(), 300))
	awaitLearned(t, f)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitReplicas(t, 0, 0)
	atZero(t, f, v1alpha1.ActuatorDirect)
	wakeAtItsSize(t, f)
}

// jobsKind has a scale subresource and no permission for the adapter.
func jobsKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "jobs.example.com", Version: "v1", Kind: "Crew"}
}

func TestDeploymentOfAnotherKindNeedsItsRight(t *testing.T) {
	t.Parallel()
	onStage(t)
	const name = "crew"
	f := addFunction(t, stage.FunctionConfig{Name: name, Deployment: true, ServiceTime: 10 * time.Millisecond})
	p := f.Consumes(newPolicy(name))
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: "jobs.example.com/v1", Kind: "Crew", Name: name}
	p.Spec.Actuator = v1alpha1.ActuatorDirect
	p.Spec.MinReplicas = new(int32(3))
	addPolicy(t, p)
	said := f.AwaitConditions(t, "TargetFound=False/TargetKindUnsupported")
	require.Contains(t, said, "this cluster does not serve kind Crew of jobs.example.com/v1: install it")

	create(t, crewDefinition())
	said = f.AwaitConditions(t, "TargetFound=False/PermissionMissing")
	require.Contains(t, said, "grant the adapter get on crews, and get and patch on crews/scale, of API group jobs.example.com")

	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "crews"}, Rules: []rbacv1.PolicyRule{{
		APIGroups: []string{"jobs.example.com"}, Resources: []string{"crews/scale"}, Verbs: []string{"get", "patch"},
	}}}
	create(t, role)
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "crews"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "crews"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "pulsar-autoscaler", Name: "adapter"}},
	})
	f.AwaitConditions(t, "TargetFound=False/TargetNotFound")

	crew := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	crew.SetGroupVersionKind(jobsKind())
	crew.SetNamespace(stage.Namespace)
	crew.SetName(name)
	create(t, crew)
	said = f.AwaitConditions(t, "TargetFound=False/ReplicasUnset")
	require.Contains(t, said, "does not set its replicas, and scaling starts from them")
	require.NoError(t, scene.Client.Patch(t.Context(), crew,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":1}}`))))
	scene.Await(t, "the crew to have as many as the policy wants", func(ctx context.Context) (bool, string, error) {
		if err := scene.Client.Get(ctx, client.ObjectKeyFromObject(crew), crew); err != nil {
			return false, "", err
		}
		replicas, _, err := unstructured.NestedInt64(crew.Object, "spec", "replicas")
		return replicas == 3, fmt.Sprint(replicas), err
	})
}

// crewDefinition defines jobsKind.
func crewDefinition() client.Object {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	definition := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": jobsKind().Group, "scope": "Namespaced",
		"names": map[string]any{"kind": jobsKind().Kind, "plural": "crews", "singular": "crew", "listKind": "CrewList"},
		"versions": []any{map[string]any{
			"name": jobsKind().Version, "served": true, "storage": true,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": anything, "status": anything},
			}},
			"subresources": map[string]any{"scale": map[string]any{
				"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
			}},
		}},
	}}}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("crews." + jobsKind().Group)
	return definition
}

// TestDeploymentRollsOutUnderLoad: pods of a rolling update belong to the target, and no scale-down happens meanwhile.
func TestDeploymentRollsOutUnderLoad(t *testing.T) {
	t.Parallel()
	const name, replicas = "rolled", 3
	f := addFunction(t, stage.FunctionConfig{
		Name: name, Deployment: true, ServiceTime: 20 * time.Millisecond, StartDelay: 2 * time.Second, Replicas: replicas,
	})
	p := f.Consumes(newPolicy(name))
	p.Spec.MinReplicas = new(int32(replicas))
	addPolicy(t, p)
	publish(t, f, load.Constant(60))
	f.AwaitConditions(t, "Ready=True/Scaling")
	require.NoError(t, scene.Client.Patch(t.Context(), f.Object(), client.RawPatch("application/merge-patch+json",
		[]byte(`{"spec":{"template":{"metadata":{"annotations":{"revision":"2"}}}}}`))))
	scene.Await(t, "the new revision to run", func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		if err := scene.Client.List(ctx, pods, client.InNamespace(stage.Namespace),
			client.MatchingLabels{"app": name}); err != nil {
			return false, "", err
		}
		renewed := 0
		for i := range pods.Items {
			if pods.Items[i].Annotations["revision"] == "2" && pods.Items[i].Status.Phase == corev1.PodRunning {
				renewed++
			}
		}
		return renewed >= replicas && renewed == len(pods.Items), fmt.Sprintf("%d of %d", renewed, len(pods.Items)), nil
	})
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.AwaitPolicy(t, "all consumers to be of the target", func(p *v1alpha1.AutoscalingPolicy) bool {
		return !slices.ContainsFunc(p.Status.Conditions, func(c metav1.Condition) bool {
			return c.Reason == v1alpha1.ReasonSurplusConsumers
		})
	})
}
