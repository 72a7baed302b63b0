// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// wanted are the objects of a Function with this many replicas.
func wanted(t *testing.T, replicas, maximum int32) owned {
	t.Helper()
	c, err := decode(Function("default", "f",
		FunctionConfig{Topics: []string{"in"}, Replicas: replicas, MaxReplicas: maximum}))
	require.NoError(t, err)
	want, err := c.wanted(&unstructured.Unstructured{})
	require.NoError(t, err)
	return want
}

func TestObserveCountsAfterTheStatefulSetFollowed(t *testing.T) {
	live := wanted(t, 1, 0)
	live.statefulSet.Status.ReadyReplicas = 1
	now := observe(status{}, live, wanted(t, 1, 0))
	require.EqualValues(t, 1, now.Replicas)
	require.Equal(t, condition{"StatefulSetReady", metav1.ConditionTrue, actionNone}, now.Conditions[partStatefulSet])

	next := observe(now, live, wanted(t, 3, 0))
	require.EqualValues(t, 1, next.Replicas, "an update is pending")
	require.Equal(t, condition{"StatefulSetReady", metav1.ConditionFalse, actionUpdate}, next.Conditions[partStatefulSet])

	rewrite(live.statefulSet, wanted(t, 3, 0).statefulSet)
	next = observe(next, live, wanted(t, 3, 0))
	require.EqualValues(t, 3, next.Replicas, "counts desired replicas, not running ones")
	require.Equal(t, condition{"StatefulSetReady", metav1.ConditionTrue, actionWait}, next.Conditions[partStatefulSet])
}

func TestObserveOfAnEmptyClusterHasNoSelector(t *testing.T) {
	next := observe(status{}, owned{}, wanted(t, 1, 4))
	require.Equal(t, status{Conditions: map[string]condition{
		partStatefulSet: {"StatefulSetReady", metav1.ConditionFalse, actionCreate},
		partHPA:         {"HPAReady", metav1.ConditionFalse, actionCreate},
	}}, next)
}

func TestObserveForgetsTheHPAWhenMaxReplicasGoes(t *testing.T) {
	next := observe(status{}, wanted(t, 1, 4), wanted(t, 1, 0))
	require.NotContains(t, next.Conditions, partHPA)
	next = observe(status{}, wanted(t, 1, 4), wanted(t, 1, 5))
	require.Equal(t, actionUpdate, next.Conditions[partHPA].Action)
	next = observe(status{}, wanted(t, 1, 4), wanted(t, 1, 4))
	require.Equal(t, actionNone, next.Conditions[partHPA].Action)
}

func TestDriftThatFunctionMeshDoesNotSeeIsNoDifference(t *testing.T) {
	live, want := wanted(t, 1, 0), wanted(t, 1, 0)
	live.statefulSet.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "yesterday"
	require.True(t, sameStatefulSet(live.statefulSet, want.statefulSet))
	rewrite(live.statefulSet, want.statefulSet)
	require.NotContains(t, live.statefulSet.Spec.Template.Annotations, "kubectl.kubernetes.io/restartedAt",
		"a scale event rewrites the whole template")
	live.statefulSet.Spec.Template.Spec.Containers[0].Image = "other"
	require.False(t, sameStatefulSet(live.statefulSet, want.statefulSet))
}

func TestSelectorHasTenLabelsForAFunction(t *testing.T) {
	require.Len(t, component{kind: KindFunction, name: "f"}.labels(), 10)
	require.Len(t, component{kind: KindSink, name: "f"}.labels(), 8)
	require.Equal(t, "f-sink", component{kind: KindSink, name: "f"}.child())
}
