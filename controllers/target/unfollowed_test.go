// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const operatorStopped = "Function Mesh does not act on the change: is its operator running? "

// acted is a Function or a child whose generation the operator has observed, in part.
func acted(object *unstructured.Unstructured, generation, observed int64) *unstructured.Unstructured {
	object.SetGeneration(generation)
	object.Object["status"] = map[string]any{"observedGeneration": observed}
	return object
}

func setOf(replicas int64) *unstructured.Unstructured {
	return fixture.StatefulSet(func(set *unstructured.Unstructured) {
		set.Object["spec"] = map[string]any{"replicas": replicas}
	})
}

func TestAnOperatorThatDoesNotActIsNoticed(t *testing.T) {
	for name, test := range map[string]struct {
		objects []client.Object
		unread  string
		want    string
	}{
		"neither the generation nor the StatefulSet follows": {
			[]client.Object{acted(fixture.Function(), 2, 1), setOf(2)},
			"",
			operatorStopped + "StatefulSet resize-function does not have the replicas of Function resize",
		},
		"the generation follows":  {[]client.Object{acted(fixture.Function(), 2, 2), setOf(2)}, "", ""},
		"the StatefulSet follows": {[]client.Object{acted(fixture.Function(), 2, 1), setOf(3)}, "", ""},
		"nothing was created": {
			[]client.Object{acted(fixture.Function(), 1, 0)}, "", operatorStopped + "Function resize has no StatefulSet",
		},
		"StatefulSets are not read": {
			[]client.Object{acted(fixture.Function(), 2, 1)}, cluster.KindStatefulSet, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat(test.objects, []client.Object{fixture.ConfigMap()})
			require.Equal(t, test.want, unfollowedBy(t, fixture.Policy(), test.unread, objects))
		})
	}
}

func TestAMeshThatDoesNotActIsNoticed(t *testing.T) {
	child := func(replicas int64) *unstructured.Unstructured {
		object := acted(fixture.MeshChild(), 2, 2)
		fixture.Spec(object)["replicas"] = replicas
		return object
	}
	for name, test := range map[string]struct {
		objects []client.Object
		want    string
	}{
		"the child follows": {[]client.Object{child(3)}, ""},
		"the child does not": {
			[]client.Object{child(2)},
			operatorStopped + "Function etl-resize does not have the replicas of its entry in the FunctionMesh",
		},
		"there is no child": {nil, operatorStopped + "Function etl-resize does not exist"},
		"the child of the child does not": {
			[]client.Object{acted(child(3), 2, 1)}, operatorStopped + "Function etl-resize has no StatefulSet",
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat(test.objects, []client.Object{fixture.Mesh(), fixture.ConfigMap()})
			require.Equal(t, test.want, unfollowedBy(t, fixture.ComponentPolicy(), "", objects))
		})
	}
}

// unfollowedBy is why the operator does not follow the target of the policy, while one kind of objects is not read.
func unfollowedBy(t *testing.T, p *v1alpha1.AutoscalingPolicy, unread string, objects []client.Object) string {
	t.Helper()
	finder := newTestTargets(t, objects, func(c *Config) {
		c.Installed = func(kind string) bool { return kind != unread && kind != cluster.KindVerticalPodAutoscaler }
	}).Finder
	found, err := finder.Find(t.Context(), p.Namespace, p.Spec)
	require.NoError(t, err)
	require.NotNil(t, found)
	described, err := finder.Describe(t.Context(), p.Namespace, found)
	require.NoError(t, err)
	return described.Unfollowed
}
