// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// setInputs renames a StatefulSet and sets the inputs of its function.
func setInputs(t *testing.T, object *unstructured.Unstructured, name, inputs string) {
	t.Helper()
	object.SetName("pf-public-default-" + name)
	fixture.SetCommand(
		t,
		object,
		[]any{"java", "--function_details", `{"tenant":"public","namespace":"default","name":"` + name +
			`","componentType":"FUNCTION","source":{"subscriptionName":"mine","inputSpecs":{` + inputs + `}}}`},
	)
}

func TestSharersOfAStatefulSet(t *testing.T) {
	const inputs = `"persistent://public/default/in":{}`
	function := fixture.Function()
	function.SetNamespace("default")
	fixture.Spec(function)["subscriptionName"] = "mine"
	configMap := fixture.ConfigMap()
	configMap.Namespace = "default"
	first := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	setInputs(t, first, "first", inputs)
	ofFunction := fixture.Policy()
	ofFunction.Namespace = "default"
	ofFirst := fixture.StatefulSetPolicy(first.GetName())

	tests := map[string]struct {
		target *v1alpha1.AutoscalingPolicy
		change func(twin *unstructured.Unstructured)
		policy func(p *v1alpha1.AutoscalingPolicy)
		want   []string
	}{
		"by a Function": {
			target: ofFunction,
			want:   []string{"StatefulSet default/pf-public-default-first", "StatefulSet default/pf-public-default-twin"},
		},
		"by another StatefulSet": {
			target: ofFirst,
			want:   []string{"Function default/resize", "StatefulSet default/pf-public-default-twin"},
		},
		"in another namespace": {
			target: ofFirst, change: func(twin *unstructured.Unstructured) { twin.SetNamespace("shop") },
			policy: func(p *v1alpha1.AutoscalingPolicy) { p.Namespace = "shop" },
			want:   []string{"Function default/resize", "StatefulSet shop/pf-public-default-twin"},
		},
		"not on another cluster": {
			target: ofFirst, policy: func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Pulsar.AdminURL = "http://elsewhere:8080" },
			want: []string{"Function default/resize"},
		},
		"not on an unknown cluster": {
			target: ofFirst, policy: func(
				p *v1alpha1.AutoscalingPolicy,
			) {
				p.Spec.Pulsar = nil
			}, want: []string{"Function default/resize"},
		},
		"not on other topics": {
			target: ofFirst, change: func(twin *unstructured.Unstructured) {
				setInputs(t, twin, "twin",
					`"persistent://public/default/out":{}`)
			},
			want: []string{"Function default/resize"},
		},
		"not a copy under another name": {
			target: ofFirst, change: func(twin *unstructured.Unstructured) {
				twin.SetName(
					"pf-public-default-copy")
			}, want: []string{"Function default/resize"},
		},
		"not Function Mesh's, which its Function covers": {
			target: ofFirst, change: func(twin *unstructured.Unstructured) {
				twin.SetOwnerReferences([]metav1.OwnerReference{{
					APIVersion: cluster.WorkloadGVK(
						cluster.KindFunction,
					).GroupVersion().String(), Kind: cluster.KindFunction, Name: "resize", UID: "1", Controller: new(true),
				}})
			},
			want: []string{"Function default/resize"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			twin := first.DeepCopy()
			setInputs(t, twin, "twin", inputs)
			if test.change != nil {
				test.change(twin)
			}
			ofTwin := fixture.StatefulSetPolicy(twin.GetName())
			ofTwin.Name, ofTwin.UID = "of-twin", "uid-of-twin"
			if test.policy != nil {
				test.policy(ofTwin)
			}
			objects := []client.Object{function.DeepCopy(), configMap.DeepCopy(), ofTwin, ofFirst.DeepCopy()}
			for _, object := range []*unstructured.Unstructured{first.DeepCopy(), twin} {
				object.SetResourceVersion("")
				_, err := Transform(object)
				require.NoError(t, err)
				objects = append(objects, object)
			}
			targets := newTestTargets(t, objects)
			found, err := targets.Finder.Find(t.Context(), test.target.Namespace, test.target.Spec)
			require.NoError(t, err)
			require.Empty(t, found.Target.Invalid)
			sharers, err := targets.Sharers.Of(t.Context(), test.target.Namespace, found.Target)
			require.NoError(t, err)
			require.Equal(t, test.want, sharers)

			found.Target.Scaling, found.Target.Component = plan.ByWorker, "public/default/twin"
			sharers, err = targets.Sharers.Of(t.Context(), test.target.Namespace, found.Target)
			require.NoError(t, err)
			require.NotContains(t, sharers, "StatefulSet default/"+twin.GetName(),
				"the StatefulSet of the function itself is no other consumer")
		})
	}
}

func TestIndexStatefulSet(t *testing.T) {
	name, by := IndexOf(cluster.KindStatefulSet)
	require.Equal(t, indexSubscription, name)
	for _, object := range fixture.RecordedStatefulSets(t) {
		_, err := Transform(object)
		require.NoError(t, err)
		if object.GetName() == "pf-public-default-silent" {
			require.Empty(t, by(object))
		} else {
			require.NotEmpty(t, by(object), object.GetName())
		}
	}
	other := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	fixture.SetCommand(t, other, []any{"postgres"})
	require.Empty(t, by(other))
}
