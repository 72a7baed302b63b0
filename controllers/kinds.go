// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Names of Function Mesh (github.com/streamnative/function-mesh, read at v0.27.2), of Kubernetes and of KEDA.
const (
	functionMeshGroup   = "compute.functionmesh.io"
	functionMeshVersion = "v1alpha1"
	kindFunction        = "Function"
	kindSink            = "Sink"
	kindSource          = "Source"
	kindFunctionMesh    = "FunctionMesh"

	kindStatefulSet           = "StatefulSet"
	kindAutoscaler            = "HorizontalPodAutoscaler"
	kindScaledObject          = "ScaledObject"
	kindVerticalPodAutoscaler = "VerticalPodAutoscaler"
	kindPolicy                = "AutoscalingPolicy"
	kindLease                 = "Lease"

	annotationManaged      = functionMeshGroup + "/managed"
	annotationPauseRollout = functionMeshGroup + "/pause-rollout"
	annotationRestartedAt  = "kubectl.kubernetes.io/restartedAt"
	annotationPaused       = "autoscaling.keda.sh/paused"
	annotationPausedAt     = "autoscaling.keda.sh/paused-replicas"
	annotationPausedIn     = "autoscaling.keda.sh/paused-scale-in"
	annotationPausedOut    = "autoscaling.keda.sh/paused-scale-out"
	annotationForced       = "autoscaling.keda.sh/force-activation"

	// annotationPort of a pod is where an instance serves its metrics.
	annotationPort = "prometheus.io/port"
)

// measuredKinds are those whose objects can be asked for what was measured, beside policies.
func measuredKinds() []string { return append(workloadKinds(), kindStatefulSet) }

// workloadKinds are the kinds that run instances and have a scale subresource.
func workloadKinds() []string { return []string{kindFunction, kindSink, kindSource} }

// watchedKinds are all kinds whose objects are brought into memory, where they are installed.
func watchedKinds() []string {
	return append(workloadKinds(), kindFunctionMesh, kindStatefulSet, kindScaledObject, kindVerticalPodAutoscaler)
}

// watchedKind is the version of a kind that is read.
func watchedKind(kind string) schema.GroupVersionKind {
	switch kind {
	case kindStatefulSet:
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
	case kindScaledObject:
		return schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: kind}
	case kindVerticalPodAutoscaler:
		return schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: kind}
	case kindAutoscaler:
		return schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: kind}
	case kindPolicy:
		return v1alpha1.GroupVersion().WithKind(kind)
	case kindLease:
		return coordinationv1.SchemeGroupVersion.WithKind(kind)
	default:
		return workloadKind(kind)
	}
}

// newObject returns an empty object to watch the kind by: policies and Leases have types of their own.
func newObject(kind string) client.Object {
	switch kind {
	case kindPolicy:
		return &v1alpha1.AutoscalingPolicy{}
	case kindLease:
		return &coordinationv1.Lease{}
	default:
		return newWorkload(kind)
	}
}

func workloadKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: functionMeshGroup, Version: functionMeshVersion, Kind: kind}
}

// workloadResource is how a URL calls one of measuredKinds.
func workloadResource(kind string) schema.GroupResource {
	return schema.GroupResource{Group: watchedKind(kind).Group, Resource: strings.ToLower(kind) + "s"}
}

// ResourceOf is how a URL calls a kind whose objects can be asked for what was measured: Function, Sink, Source or
// StatefulSet.
func ResourceOf(kind string) (resource schema.GroupResource, known bool) {
	return workloadResource(kind), slices.Contains(measuredKinds(), kind)
}

// kindOfResource is the inverse of workloadResource; empty for other resources.
func kindOfResource(resource schema.GroupResource) string {
	for _, kind := range measuredKinds() {
		if workloadResource(kind) == resource {
			return kind
		}
	}
	return ""
}

// newWorkload returns an empty object of the kind to read into.
func newWorkload(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(watchedKind(kind))
	return object
}

func newWorkloadList(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(watchedKind(kind))
	return list
}

// workloadOfStatefulSet is the inverse of plan.FunctionMeshName; empty for other StatefulSets.
func workloadOfStatefulSet(statefulSet string) (kind, name string) {
	for _, kind := range workloadKinds() {
		if name, found := strings.CutSuffix(statefulSet, "-"+strings.ToLower(kind)); found && name != "" {
			return kind, name
		}
	}
	return "", ""
}
