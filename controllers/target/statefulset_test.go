// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// findStatefulSet finds the target of a policy among the objects.
func findStatefulSet(t *testing.T, p *v1alpha1.AutoscalingPolicy, objects ...*unstructured.Unstructured) (*plan.Target,
	error,
) {
	t.Helper()
	var kept []client.Object
	for _, object := range objects {
		one := object.DeepCopy()
		one.SetResourceVersion("")
		kept = append(kept, one)
	}
	targets := newTestTargets(t, kept)
	return targets.Finder.Find(t.Context(), p.Namespace, p.Spec)
}

func TestFindStatefulSetOfWorker(t *testing.T) {
	type consumption struct {
		component, name string
		kind            backlog.SubscriptionType
		topics          []string
		patterns        []string
		neverZero       bool
	}
	tests := map[string]struct {
		want    consumption
		invalid string
	}{
		"pf-public-default-resize": {want: consumption{
			component: "public/default/resize", name: "public/default/resize", kind: backlog.Shared,
			topics: []string{"persistent://public/default/resize-in"},
		}},
		"pf-public-my-space-cropit-6c8db9d4": {want: consumption{
			component: "public/My_Space/CropIt", name: "it's mine", kind: backlog.Failover,
			topics: []string{"persistent://public/default/a", "persistent://public/default/b"},
		}},
		"pf-public-default-patterned": {want: consumption{
			component: "public/default/patterned", name: "public/default/patterned", kind: backlog.KeyShared,
			topics: []string{"persistent://public/default/literal"}, patterns: []string{"persistent://public/default/rx-.*"},
		}},
		"pf-public-default-drain": {want: consumption{
			component: "public/default/drain", name: "mine", kind: backlog.KeyShared,
			topics: []string{"persistent://public/default/sink-in"},
		}},
		"pf-public-default-tasks": {want: consumption{
			component: "public/default/tasks", name: "BatchSourceExecutor-public/default/tasks", kind: backlog.Shared,
			topics: []string{"persistent://public/default/tasks-intermediate"}, neverZero: true,
		}},
		"pf-public-default-snake": {want: consumption{
			component: "public/default/snake", name: "public/default/snake", kind: backlog.Shared,
			topics: []string{"persistent://public/default/snake-in"},
		}},
		"pf-public-default-gopher": {want: consumption{
			component: "public/default/gopher", name: "public/default/gopher", kind: backlog.Failover,
			topics: []string{"persistent://public/default/gopher-in"},
		}},
		"pf-public-default-job": {want: consumption{
			component: "public/default/job", name: "public/default/job", kind: backlog.Shared,
			topics: []string{"persistent://public/default/j-in"},
		}},
		"pf-public-default-silent": {invalid: "source public/default/silent brings data into Pulsar and consumes nothing " +
			"there"},
	}
	recorded := fixture.RecordedStatefulSets(t)
	require.Len(t, tests, len(recorded), "all recorded ones")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := findStatefulSet(t, fixture.StatefulSetPolicy(name), recorded[name])
			require.NotNil(t, found)
			if test.invalid != "" {
				require.ErrorContains(t, err, "StatefulSet "+name+" cannot be scaled: "+test.invalid)
				return
			}
			require.NoError(t, err)
			target := *found
			require.Equal(t, test.want, consumption{
				component: target.Component, name: target.Subscription.Name, kind: target.SubscriptionType,
				topics:   target.Subscription.Topics,
				patterns: slices.Concat(target.Subscription.Patterns), neverZero: target.NeverZero,
			})
			require.Equal(t, "StatefulSet/default/"+name, target.Subscription.Workload.String())
			require.Equal(t, backlog.Cluster{AdminURL: "http://pulsar:8080"}, target.Subscription.Cluster)
			require.NotNil(t, target.Replicas)
			require.Equal(t, plan.BySubresource, target.Scaling)
			require.Equal(t, []v1alpha1.ScaleTargetRef{target.Ref}, target.Scaled)
		})
	}
}

func TestOtherStatefulSetsAreRefused(t *testing.T) {
	resize := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	tests := map[string]struct {
		change  func(object *unstructured.Unstructured)
		policy  func(p *v1alpha1.AutoscalingPolicy)
		invalid string
	}{
		"a database": {
			change: func(object *unstructured.Unstructured) {
				object.SetName("postgres")
				fixture.SetCommand(t, object, []any{"postgres", "-D", "/data"})
			},
			invalid: "do not run a Pulsar instance",
		},
		"a copy under another name": {
			change: func(object *unstructured.Unstructured) { object.SetName("pf-public-default-other") },
			invalid: "it runs public/default/resize, and Pulsar's function worker names its StatefulSet " +
				"pf-public-default-resize: use that one",
		},
		"details that cannot be decoded": {
			change: func(object *unstructured.Unstructured) {
				fixture.SetCommand(t, object, []any{"sh", "-c", "java --function_details '{'"})
			},
			invalid: "reading --function_details",
		},
		"details without a function": {
			change: func(object *unstructured.Unstructured) {
				fixture.SetCommand(t, object, []any{"sh", "-c", "java --function_details '{}'"})
			},
			invalid: "has no tenant, namespace or name",
		},
		"an unknown Pulsar cluster": {
			policy:  func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Pulsar = nil },
			invalid: "set spec.pulsar.adminURL of the policy, or --pulsar-admin-url of the adapter",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := resize.DeepCopy()
			if test.change != nil {
				test.change(object)
			}
			p := fixture.StatefulSetPolicy(object.GetName())
			if test.policy != nil {
				test.policy(p)
			}
			found, err := findStatefulSet(t, p, object)
			require.NotNil(t, found)
			if test.policy == nil {
				require.ErrorContains(t, err, "StatefulSet "+object.GetName()+" cannot be scaled: ")
			}
			require.ErrorContains(t, err, test.invalid)
			require.Equal(t, v1alpha1.ReasonTargetInvalid, problemOf(t, err).Reason)
		})
	}
}

func TestStatefulSetOfFunctionMeshHasAnOwner(t *testing.T) {
	object := fixture.RecordedStatefulSets(t)["pf-public-default-resize"].DeepCopy()
	object.SetName("resize-function")
	yes := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: cluster.WorkloadGVK(
			cluster.KindFunction,
		).GroupVersion().String(), Kind: cluster.KindFunction, Name: "resize", UID: "1", Controller: &yes,
	}})
	p := fixture.StatefulSetPolicy("resize-function")
	found, err := findStatefulSet(t, p, object)
	require.NoError(t, err)
	v := plan.Check(plan.Subject{Policy: p, Target: found}, plan.Autoscalers{})
	require.Equal(t, v1alpha1.ReasonOwnedByAnotherController, v.Reason)
	require.Equal(t,
		"StatefulSet resize-function is controlled by Function resize, which resets its replicas: set "+
			"spec.scaleTargetRef to kind "+
			"Function, name resize instead", v.Message)
}

func TestInstancesWithoutMetricsAreNotScraped(t *testing.T) {
	object := fixture.RecordedStatefulSets(t)["pf-public-default-resize"].DeepCopy()
	unstructured.RemoveNestedField(object.Object, "spec", "template", "metadata", "annotations")
	found, err := findStatefulSet(t, fixture.StatefulSetPolicy(object.GetName()), object)
	require.NoError(t, err)
	require.Empty(t, found.Subscription.Workload)
}

func TestWindowThatNeverAcknowledges(t *testing.T) {
	tests := map[string]struct {
		window string
		never  bool
	}{
		"acknowledged by the window": {`{"windowLengthCount":10,"processingGuarantees":"ATLEAST_ONCE"}`, false},
		"never acknowledged":         {`{"windowLengthCount":10}`, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			object := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
			config, err := json.Marshal(`{"__WINDOWCONFIGS__":` + test.window + `}`)
			require.NoError(t, err)
			fixture.SetCommand(t, object,
				[]any{"java", "--function_details", `{"tenant":"public","namespace":"default","name":"resize",` +
					`"processingGuarantees":"MANUAL","userConfig":` + string(config) + `,"source":{"inputSpecs":{"in":{}}}}`})
			target, err := findStatefulSet(t, fixture.StatefulSetPolicy(object.GetName()), object)
			require.NoError(t, err)
			require.Equal(t, test.never, target.NeverAcknowledges)
		})
	}
}

func TestFindMissingStatefulSet(t *testing.T) {
	found, err := findStatefulSet(t, fixture.StatefulSetPolicy("pf-public-default-resize"))
	require.NoError(t, err)
	require.Nil(t, found)
}
