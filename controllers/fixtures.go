// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// testNamespace is the Kubernetes namespace of all that is not said to be elsewhere.
	testNamespace = "media"
	// testTopic is what testFunction consumes.
	testTopic = "persistent://public/default/in"
)

// testCluster is the Pulsar cluster that testConfigMap names.
func testCluster() backlog.Cluster { return backlog.Cluster{AdminURL: "http://pulsar:8080"} }

func testKey() types.NamespacedName {
	return types.NamespacedName{Namespace: testNamespace, Name: "resize"}
}

// testPolicy scales Function resize from 1 to 20 replicas.
func testPolicy() *v1alpha1.AutoscalingPolicy {
	return &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{
			Name: "resize", Namespace: testNamespace, UID: "uid-resize", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Unix(1_700_000_000, 0)),
		},
		Spec: v1alpha1.AutoscalingPolicySpec{
			ScaleTargetRef: v1alpha1.ScaleTargetRef{
				APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: "resize",
			},
			MinReplicas: new(int32(1)), MaxReplicas: 20, Mode: v1alpha1.ModeAuto,
			Strategies: []v1alpha1.Strategy{{
				Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 100},
			}},
		},
	}
}

// testFunction consumes persistent://public/default/in with three replicas.
func testFunction() *unstructured.Unstructured { return testWorkload("Function") }

// testWorkload is an object of another kind that does the same.
func testWorkload(kind string) *unstructured.Unstructured {
	object := meshObject(kind)
	object.SetNamespace(testNamespace)
	object.SetName("resize")
	object.Object["spec"] = map[string]any{
		"replicas": int64(3),
		"input":    map[string]any{"topics": []any{"in"}},
		"pulsar":   map[string]any{"pulsarConfig": "pulsar"},
	}
	return object
}

func testConfigMap() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "pulsar"},
		Data: map[string]string{
			"webServiceURL":    testCluster().AdminURL + "/",
			"brokerServiceURL": "pulsar://pulsar:6650",
		},
	}
}

// spec of an object, to be changed.
func spec(object *unstructured.Unstructured) map[string]any {
	fields, _ := object.Object["spec"].(map[string]any)
	return fields
}

// ownedBy makes an object's controller.
func ownedBy(object client.Object, apiVersion, kind, name string) {
	yes := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: "uid",
		Controller: &yes,
	}})
}

const tokenPlugin = "org.apache.pulsar.client.impl.auth.AuthenticationToken"

// lateKind is an API server that has a kind once it is installed.
type lateKind struct{ installed atomic.Bool }

func (k *lateKind) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if !k.installed.Load() {
		return nil, &meta.NoKindMatchError{GroupKind: gk}
	}
	return &meta.RESTMapping{}, nil
}

// testSample is an answer of Pulsar to three consumers: so many messages are pending, of so many published ever.
func testSample(now time.Time, pending, published int64) backlog.TopicSample {
	entries := published
	return backlog.TopicSample{
		At: now, Detail: backlog.Full | backlog.Precise,
		Partitions: []backlog.PartitionSample{{
			Index: backlog.NotPartitioned, PublishedMessages: published, AddedEntries: &entries,
			Subscriptions: []backlog.SubscriptionSample{{
				Name: "public/default/resize", Type: backlog.Shared, BacklogEntries: pending,
				DeliveredMessages: published - pending,
				Consumers:         []backlog.ConsumerSample{{ID: "0"}, {ID: "1"}, {ID: "2"}},
			}},
		}},
	}
}

// meshObject is an empty object of a kind of Function Mesh.
func meshObject(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("compute.functionmesh.io/v1alpha1")
	object.SetKind(kind)
	return object
}
