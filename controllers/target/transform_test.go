// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

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

func TestTransformKeepsDecodedFieldsOfAFunction(t *testing.T) {
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(wholeFunction)))
	before, err := decodeWorkload(cluster.KindFunction, u.DeepCopy().Object)
	require.NoError(t, err)
	kept, err := Transform(u)
	require.NoError(t, err)
	require.Same(t, u, kept)
	after, err := decodeWorkload(cluster.KindFunction, u.Object)
	require.NoError(t, err)
	delete(before.Metadata.Annotations, corev1.LastAppliedConfigAnnotation)
	delete(before.Spec.Pod.Annotations, "checksum/config")
	observed, _, err := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	require.NoError(t, err)
	require.Equal(t, int64(2), observed)
	require.NotEmpty(t, after.Status.PendingChange)
	before.Status.PendingChange = after.Status.PendingChange
	require.Equal(t, before, after)

	text, err := json.Marshal(u.Object)
	require.NoError(t, err)
	for _, gone := range []string{
		"hunter2", "hunter3", "checksum", "resources", "image", "managedFields", "conditions",
		"last-applied",
	} {
		require.NotContains(t, string(text), gone)
	}
	require.Equal(t, map[string]string{"team": "a"}, u.GetLabels())
	require.Equal(t, int64(3), u.GetGeneration())
	require.Equal(t, "7", u.GetResourceVersion())
	fields, ok := u.Object["spec"].(map[string]any)
	require.True(t, ok)
	require.Len(t, fields, len(jsonKeys(reflect.TypeFor[workloadSpec]())), "the text above has every field: %v",
		slices.Sorted(maps.Keys(fields)))
}

func TestTransformOtherAutoscalers(t *testing.T) {
	for _, kind := range []string{cluster.KindScaledObject, cluster.KindVerticalPodAutoscaler} {
		object := cluster.NewUnstructured(kind)
		object.SetName("other")
		object.SetNamespace(fixture.Namespace)
		object.SetUID("uid")
		object.SetGeneration(7)
		object.SetResourceVersion("70")
		object.SetLabels(map[string]string{"scaledobject.keda.sh/name": "other"})
		object.SetAnnotations(map[string]string{
			cluster.AnnotationPaused: "true", cluster.AnnotationPausedAt: "3", plan.AnnotationPausedBy: "resize",
			"note": strings.Repeat("x",
				10_000),
			corev1.LastAppliedConfigAnnotation: "{}",
		})
		fixture.SetOwner(object, "v1", "Widget", "w")
		target := map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "resize-function"}
		object.Object["spec"] = map[string]any{
			"scaleTargetRef": target, "targetRef": target, "triggers": []any{map[string]any{"type": "kafka"}},
			"updatePolicy": map[string]any{"updateMode": "Off"}, "resourcePolicy": map[string]any{},
		}
		object.Object["status"] = map[string]any{"recommendation": "long"}
		_, err := Transform(object)
		require.NoError(t, err)
		require.Equal(t, map[string]any{
			"scaleTargetRef": target, "targetRef": target, "updatePolicy": map[string]any{"updateMode": "Off"},
		}, fixture.Spec(object))
		require.NotContains(t, object.Object, "status")
		require.Equal(t, map[string]string{
			cluster.AnnotationPaused: "true", cluster.AnnotationPausedAt: "3", plan.AnnotationPausedBy: "resize",
		}, object.GetAnnotations())
		require.Empty(t, object.GetLabels())
		require.Equal(t, "Widget w", ControllerOf(object))
		require.Equal(t, []any{"uid", int64(7), "70", kind},
			[]any{string(object.GetUID()), object.GetGeneration(), object.GetResourceVersion(), object.GetKind()})
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
