// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// cachedObjects are a Function, as a user writes it and Function Mesh's webhook completes it, and its StatefulSet.
var cachedObjects = map[string]string{
	"Function": `{
		"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function",
		"metadata": {
			"name": "function-%[1]d", "namespace": "bench", "uid": "6f0c2a52-0000-4000-8000-%012[1]d",
			"resourceVersion": "%[1]d", "generation": 3, "creationTimestamp": "2026-11-21T12:00:00Z",
			"labels": {"team": "media"}, "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
		},
		"spec": {
			"tenant": "public", "namespace": "default", "name": "function-%[1]d", "clusterName": "pulsar",
			"className": "pulsarautoscaler.PacedFunction", "image": "streamnative/pulsar-functions-java-runner:3.3.9",
			"java": {"jar": "/pulsar/paced-function.jar"}, "pulsar": {"pulsarConfig": "pulsar"}, "replicas": 10,
			"input": {
				"typeClassName": "[B", "topics": ["persistent://public/default/in-%[1]d"],
				"sourceSpecs": {"persistent://public/default/in-%[1]d": {"receiverQueueSize": 100}}
			},
			"output": {"topic": "persistent://public/default/out-%[1]d", "typeClassName": "[B"},
			"resources": {"limits": {"cpu": "200m", "memory": "256Mi"}}, "autoAck": true, "maxPendingAsyncRequests": 1000,
			"subscriptionName": "function-%[1]d", "processingGuarantee": "atleast_once",
			"pod": {"terminationGracePeriodSeconds": 30, "labels": {"team": "media"}}
		},
		"status": {"conditions": {}, "replicas": 10, "selector": "app=function", "observedGeneration": 3}
	}`,
	"StatefulSet": `{
		"apiVersion": "apps/v1", "kind": "StatefulSet",
		"metadata": {
			"name": "function-%[1]d-function", "namespace": "bench", "uid": "7f0c2a52-0000-4000-8000-%012[1]d",
			"resourceVersion": "%[1]d", "generation": 3, "creationTimestamp": "2026-11-21T12:00:00Z",
			"labels": {"app": "function-mesh", "compute.functionmesh.io/name": "function-%[1]d"},
			"ownerReferences": [{
				"apiVersion": "compute.functionmesh.io/v1alpha1", "kind": "Function", "name": "function-%[1]d",
				"uid": "6f0c2a52-0000-4000-8000-%012[1]d", "controller": true, "blockOwnerDeletion": true
			}]
		},
		"spec": {
			"replicas": 10, "serviceName": "function-%[1]d-function-headless", "podManagementPolicy": "Parallel",
			"selector": {"matchLabels": {"app": "function-mesh", "compute.functionmesh.io/name": "function-%[1]d"}},
			"template": {"metadata": {"labels": {"app": "function-mesh"}}, "spec": {"containers": [
				{"name": "pulsar-function", "command": ["sh", "-c"], "args": ["java JavaInstanceMain"]}
			]}},
			"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
		},
		"status": {
			"observedGeneration": 3, "replicas": 10, "readyReplicas": 10, "currentReplicas": 10, "updatedReplicas": 10,
			"currentRevision": "function-%[1]d-function-5d8f7c9b4", "updateRevision": "function-%[1]d-function-5d8f7c9b4",
			"collisionCount": 0, "availableReplicas": 10
		}
	}`,
}

// BenchmarkTransform reports how much heap an object takes in the store of a cache (B/object).
func BenchmarkTransform(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return float64(stats.HeapAlloc)
	}
	for kind, text := range cachedObjects {
		b.Run(kind, func(b *testing.B) {
			const each = 2000
			for b.Loop() {
				before := heap()
				store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
					cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
				})
				for i := range each {
					u := &unstructured.Unstructured{}
					require.NoError(b, u.UnmarshalJSON(fmt.Appendf(nil, text, i)))
					object, err := Transform(u)
					require.NoError(b, err)
					require.NoError(b, store.Add(object))
				}
				b.ReportMetric((heap()-before)/each, "B/object")
				runtime.KeepAlive(store)
			}
		})
	}
}
