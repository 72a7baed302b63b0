// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestMistakesOfTheUserBecomeConditions(t *testing.T) {
	older := func(mode v1alpha1.Mode) *v1alpha1.AutoscalingPolicy {
		p := fixture.Policy()
		p.Name, p.UID, p.Spec.Mode = "first", "uid-first", mode
		p.CreationTimestamp = metav1.NewTime(p.CreationTimestamp.Add(-time.Hour))
		return p
	}
	tests := map[string]struct {
		// change edits the Function and the policy, and returns further objects.
		change    func(f *unstructured.Unstructured, p *v1alpha1.AutoscalingPolicy) []client.Object
		absent    bool
		condition string
		status    string
		message   string
		// tracked: the subscription is tracked all the same.
		tracked bool
	}{
		"the target does not exist": {
			change: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				f.SetName("other")
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/TargetNotFound",
			message: "Function resize does not exist in namespace media",
		},
		"the kind is not supported": {
			change: func(_ *unstructured.Unstructured, p *v1alpha1.AutoscalingPolicy) []client.Object {
				p.Spec.ScaleTargetRef.APIVersion, p.Spec.ScaleTargetRef.Kind = "apps/v1", "Deployment"
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/TargetKindUnsupported",
			message: "kind Deployment of apps/v1 does not say what it consumes: use Function, Sink, Source or FunctionMesh of " +
				"compute.functionmesh.io/v1alpha1, or StatefulSet of apps/v1",
		},
		"Function Mesh is not installed": {
			absent: true, condition: v1alpha1.ConditionTargetFound, status: "False/TargetKindUnsupported",
			message: "install Function Mesh",
		},
		"an input is a pattern that cannot be compiled": {
			change: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				fixture.Spec(f)["input"] = map[string]any{"topicPattern": "persistent://public/default/(?=a).*"}
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/TargetInvalid",
			message: "write it without them, or name the topics",
		},
		"the Function has no replicas": {
			change: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				delete(fixture.Spec(f), "replicas")
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/ReplicasUnset", message: "set it to 1",
		},
		"the Function belongs to a mesh": {
			change: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				yes := true
				f.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "photos", UID: "mesh",
					Controller: &yes,
				}})
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/OwnedByFunctionMesh",
			message: "belongs to FunctionMesh photos",
		},
		"Function Mesh ignores the Function": {
			change: func(f *unstructured.Unstructured, _ *v1alpha1.AutoscalingPolicy) []client.Object {
				f.SetAnnotations(map[string]string{"compute.functionmesh.io/managed": "false"})
				return nil
			},
			condition: v1alpha1.ConditionTargetFound, status: "False/Unmanaged", message: "remove the annotation",
		},
		"another autoscaler scales the Function": {
			change: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/ConflictingAutoscaler",
			message: "theirs scales Function resize", tracked: true,
		},
		"an older policy scales the Function": {
			change: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{older(v1alpha1.ModeAuto)}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/OlderPolicy",
			message: "AutoscalingPolicy first is older", tracked: true,
		},
		"an older policy only recommends": {
			change: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				return []client.Object{older(v1alpha1.ModeRecommend)}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "Unknown/Pending", tracked: true,
		},
		"a policy of this name was deleted, and its autoscaler not yet": {
			change: func(_ *unstructured.Unstructured, p *v1alpha1.AutoscalingPolicy) []client.Object {
				left := otherAutoscaler("apps/v1", "Deployment", "web")
				left.Name = plan.AutoscalerName("resize")
				left.OwnerReferences = []metav1.OwnerReference{
					*metav1.NewControllerRef(p, v1alpha1.GroupVersion().WithKind(v1alpha1.KindAutoscalingPolicy)),
				}
				left.OwnerReferences[0].UID = "deleted"
				return []client.Object{left}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "Unknown/Pending",
			message: "waiting until Kubernetes deletes", tracked: true,
		},
		"our name is taken": {
			change: func(*unstructured.Unstructured, *v1alpha1.AutoscalingPolicy) []client.Object {
				taken := otherAutoscaler("apps/v1", "Deployment", "web")
				taken.Name = plan.AutoscalerName("resize")
				return []client.Object{taken}
			},
			condition: v1alpha1.ConditionAutoscalerApplied, status: "False/AutoscalerNameTaken", message: "is not this policy's",
			tracked: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			function, p := fixture.Function(), fixture.Policy()
			objects := []client.Object{function, p, fixture.ConfigMap()}
			if test.change != nil {
				objects = append(objects, test.change(function, p)...)
			}
			env := newTestEnv(t, objects...)
			env.installed = !test.absent
			require.Equal(t, []string{"patch status"}, env.reconcile())
			status, message := env.condition(test.condition)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Equal(t, int64(1), env.policy().Status.ObservedGeneration)
			_, err := env.store.Read(backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in"), env.now)
			if test.tracked {
				require.ErrorIs(t, err, backlog.ErrNoData)
			} else {
				require.ErrorIs(t, err, backlog.ErrNotTracked)
			}
			require.Empty(t, env.reconcile(), "a second reconcile of the same objects writes nothing")
		})
	}
}
