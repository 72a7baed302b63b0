// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestStatefulSetUpdating(t *testing.T) {
	rollout := func(set *unstructured.Unstructured) {
		set.Object["status"] = map[string]any{
			"currentRevision": "a", "updateRevision": "b", "replicas": int64(3),
			"updatedReplicas": int64(1),
		}
	}
	require.True(t, Decode(fixture.StatefulSet(rollout)).pods.replacing)
	for name, change := range map[string]func(*unstructured.Unstructured){
		"all pods are new, though not all are ready": func(set *unstructured.Unstructured) {
			rollout(set)
			_ = unstructured.SetNestedField(set.Object, int64(3), "status", "updatedReplicas")
		},
		"pods wait for a user to delete them": func(set *unstructured.Unstructured) {
			rollout(set)
			_ = unstructured.SetNestedField(set.Object, "OnDelete", "spec", "updateStrategy", "type")
		},
		"it stops at a partition": func(set *unstructured.Unstructured) {
			rollout(set)
			_ = unstructured.SetNestedField(set.Object, int64(2), "spec", "updateStrategy", "rollingUpdate", "partition")
		},
		"nothing changes": nil,
	} {
		require.False(t, Decode(fixture.StatefulSet(change)).pods.replacing, name)
	}
}

func TestReadyReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		status map[string]any
		want   *int32
	}{
		"before its controller wrote a status": {nil, nil},
		"none is ready":                        {map[string]any{"replicas": int64(3)}, new(int32)},
		"some are ready": {
			map[string]any{"replicas": int64(3), "readyReplicas": int64(2)}, new(int32(2)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := fixture.StatefulSet(nil)
			if delete(set.Object, "status"); test.status != nil {
				set.Object["status"] = test.status
			}
			require.Equal(t, test.want, readyReplicas(Decode(set)))
		})
	}
	require.Nil(t, readyReplicas(nil))
}
