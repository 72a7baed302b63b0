// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// wholeFunction has every decoded field, and some of those that make an object large.
const wholeFunction = `{
	"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function",
	"metadata": {
		"name": "resize", "namespace": "media", "uid": "1", "resourceVersion": "7", "generation": 3, "labels": {"team": "a"},
		"annotations": {"compute.functionmesh.io/managed": "false", "kubectl.kubernetes.io/last-applied-configuration": "{}"},
		"ownerReferences": [{"apiVersion": "v1", "kind": "FunctionMesh", "name": "m", "uid": "2", "controller": true}],
		"managedFields": [{"manager": "kubectl", "operation": "Update"}]
	},
	"spec": {
		"tenant": "t", "namespace": "n", "name": "f", "replicas": 2, "minReplicas": 1, "maxReplicas": 5, "subscriptionName": "s",
		"skipToLatest": true, "input": {
			"topics": ["a"], "topicPattern": "b.*", "customSerdeSources": {"c": "x"}, "customSchemaSources": {"d": "x"},
			"sourceSpecs": {"e.*": {"isRegexPattern": true, "consumerProperties": {"k": "v"}}}
		},
		"output": {"topic": "o"}, "processingGuarantee": "manual", "retainOrdering": true, "retainKeyOrdering": true, "windowConfig": {"processingGuarantees": "ATMOST_ONCE"},
		"sourceConfig": {"className": "c"}, "batchSourceConfig": {"discoveryTriggererClassName": "x"},
		"golang": {"go": "x"}, "python": {"py": "x"}, "genericRuntime": {"functionFile": "x"},
		"pulsar": {
			"pulsarConfig": "p", "authSecret": "a", "tlsSecret": "t", "authConfig": {"genericAuth": {"clientAuthenticationPlugin": "p"}},
			"tlsConfig": {"enabled": true}
		},
		"secretsMap": {"A": {"path": "p", "key": "k"}, "B": {"path": "p", "key": "k"}}, "showPreciseParallelism": true,
		"pod": {
			"env": [{"name": "PASSWORD", "value": "hunter2"}], "vpa": {"updatePolicy": {"updateMode": "Off"}},
			"annotations": {"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z", "checksum/config": "abcdef"}
		}, "resources": {"limits": {"cpu": "1"}}, "image": "i"
	},
	"status": {"conditions": {"StatefulSet": {"status": "True"}}, "replicas": 2, "selector": "s", "observedGeneration": 2, "pendingChange": "{\"spec\":\"hunter3\"}"}
}`

// cached is an object as the cache keeps it.
func cached(t *testing.T, object any) *Cached {
	t.Helper()
	kept, err := Transform(object)
	require.NoError(t, err)
	c, ok := kept.(*Cached)
	require.True(t, ok)
	again, err := Transform(c)
	require.NoError(t, err)
	require.Same(t, c, again, "client-go may transform an object twice")
	require.NoError(t, c.Invalid())
	return c
}

func TestTransformKeepsFieldsOfAFunction(t *testing.T) {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(wholeFunction)))
	c := cached(t, u)
	require.Equal(t, metav1.ObjectMeta{
		Name: "resize", Namespace: "media", UID: "1", ResourceVersion: "7", Generation: 3,
		Labels: map[string]string{"team": "a"}, Annotations: map[string]string{cluster.AnnotationManaged: "false"},
		OwnerReferences: u.GetOwnerReferences(),
	}, c.ObjectMeta)
	require.Equal(t, cluster.WorkloadGVK(cluster.KindFunction), c.GroupVersionKind())
	require.Equal(t, int64(2), c.observed)
	require.Equal(t, "pending", c.Rollout())
	require.Equal(t, []*int32{new(int32(2)), new(int32(1)), new(int32(5))},
		[]*int32{c.Replicas(), c.workload.MinReplicas, c.workload.MaxReplicas})
	require.Equal(t, map[string]string{cluster.AnnotationRestartedAt: "2026-01-01T00:00:00Z"}, c.workload.Pod.Annotations)
	require.Equal(t, "Off", c.workload.Pod.VPA.UpdatePolicy.UpdateMode)
	require.Equal(t, PulsarSpec{
		PulsarConfig: "p", AuthSecret: "a", TLSSecret: "t", TLSConfig: &TLSConfig{Enabled: true},
		AuthConfig: &AuthConfig{GenericAuth: &GenericAuth{Plugin: "p"}},
	}, c.workload.Pulsar)
	require.Len(t, c.workload.SecretsMap, 2)
	require.True(t, c.workload.ShowPreciseParallelism)
	require.Equal(t, "o", c.workload.Output.Topic)
	require.Equal(t, "t/n/f", c.function().FullName())
	require.NotContains(t, fmt.Sprintf("%+v %+v", c, c.workload), "hunter", "of secrets it keeps nothing")
}

func TestAnObjectOfTheCacheCannotBeWritten(t *testing.T) {
	c := newTestClient(t, fixture.Function())
	object := NewCached(cluster.KindFunction)
	require.NoError(t, c.Get(t.Context(), fixture.Key(), object))
	require.Equal(t, int32(3), *object.Replicas())
	_, err := json.Marshal(object)
	require.ErrorIs(t, err, errPartial)
}

func TestTransformOtherAutoscalers(t *testing.T) {
	for _, kind := range []string{cluster.KindScaledObject, cluster.KindVerticalPodAutoscaler} {
		object := cluster.NewUnstructured(kind)
		object.SetName("other")
		object.SetLabels(map[string]string{"scaledobject.keda.sh/name": "other"})
		paused := map[string]string{
			plan.AnnotationPaused: "true", plan.AnnotationPausedAt: "3", plan.AnnotationPausedBy: "resize",
		}
		object.SetAnnotations(maps.Clone(paused))
		fixture.SetOwner(object, "v1", "Widget", "w")
		object.Object["spec"] = map[string]any{
			"targetRef":    map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "resize-function"},
			"updatePolicy": map[string]any{"updateMode": "Off"}, "resourcePolicy": map[string]any{},
		}
		object.Object["status"] = map[string]any{"recommendation": "long"}
		c := cached(t, object)
		require.Equal(t, &v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "resize-function"},
			c.ScaleTarget())
		require.Equal(t, "Off", c.autoscaler.updateMode)
		require.Nil(t, c.autoscaler.scaledObject)
		require.Equal(t, paused, c.Annotations)
		require.Empty(t, c.Labels)
		require.Equal(t, "Widget w", ControllerOf(c))
	}
}

func TestTransformDropsWhatRepeatsAnObject(t *testing.T) {
	p := fixture.Policy()
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	p.Annotations = map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "note": "n"}
	kept, err := Transform(p)
	require.NoError(t, err)
	want := fixture.Policy()
	want.Annotations = map[string]string{"note": "n"}
	require.Equal(t, want, kept)
	_, err = Transform("no object")
	require.NoError(t, err)
}

func TestTransformKeepsTheConditionsOfAnAutoscaler(t *testing.T) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 7},
		Status: autoscalingv2.HorizontalPodAutoscalerStatus{
			Conditions: []autoscalingv2.HorizontalPodAutoscalerCondition{{
				Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "ScalingDisabled", Message: "at zero",
			}},
			CurrentMetrics: []autoscalingv2.MetricStatus{{Type: autoscalingv2.ObjectMetricSourceType}}, DesiredReplicas: 3,
		},
	}
	want := hpa.DeepCopy()
	want.Status.CurrentMetrics, want.Status.DesiredReplicas = nil, 0
	kept, err := Transform(hpa)
	require.NoError(t, err)
	require.Equal(t, want, kept)
}
