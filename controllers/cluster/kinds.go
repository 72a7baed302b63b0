// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Names of Function Mesh (github.com/streamnative/function-mesh, read at v0.27.2), of Kubernetes and of KEDA.
const (
	FunctionMeshGroup   = "compute.functionmesh.io"
	functionMeshVersion = "v1alpha1"
	KindFunction        = "Function"
	KindSink            = "Sink"
	KindSource          = "Source"
	KindFunctionMesh    = "FunctionMesh"

	KindStatefulSet           = plan.KindStatefulSet
	KindDeployment            = "Deployment"
	KindAutoscaler            = plan.KindAutoscaler
	KindScaledObject          = plan.KindScaledObject
	KindVerticalPodAutoscaler = "VerticalPodAutoscaler"
	KindPolicy                = "AutoscalingPolicy"
	KindLease                 = "Lease"

	AnnotationManaged      = FunctionMeshGroup + "/managed"
	AnnotationPauseRollout = FunctionMeshGroup + "/pause-rollout"
	AnnotationRestartedAt  = "kubectl.kubernetes.io/restartedAt"

	// AnnotationPort of a pod is the port at which an instance serves its metrics.
	AnnotationPort = "prometheus.io/port"
)

// MeasuredKinds are the kinds with signals of their own, besides policies.
func MeasuredKinds() []string { return append(WorkloadKinds(), KindStatefulSet) }

// WorkloadKinds are the kinds that run instances and have a scale subresource.
func WorkloadKinds() []string { return []string{KindFunction, KindSink, KindSource} }

// CachedKinds are the kinds that the controller caches, if they are installed.
func CachedKinds() []string {
	return append(WorkloadKinds(), KindFunctionMesh, KindStatefulSet, KindDeployment, KindScaledObject,
		KindVerticalPodAutoscaler)
}

// GVK is the version of a kind that this project reads.
func GVK(kind string) schema.GroupVersionKind {
	switch kind {
	case KindStatefulSet, KindDeployment:
		return schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: kind}
	case KindScaledObject:
		return schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: kind}
	case KindVerticalPodAutoscaler:
		return schema.GroupVersionKind{Group: "autoscaling.k8s.io", Version: "v1", Kind: kind}
	case KindAutoscaler:
		return schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: kind}
	case KindPolicy:
		return v1alpha1.GroupVersion().WithKind(kind)
	case KindLease:
		return coordinationv1.SchemeGroupVersion.WithKind(kind)
	default:
		return WorkloadGVK(kind)
	}
}

// NewObject returns an empty object to watch the kind by: policies and Leases have types of their own.
func NewObject(kind string) client.Object {
	switch kind {
	case KindPolicy:
		return &v1alpha1.AutoscalingPolicy{}
	case KindLease:
		return &coordinationv1.Lease{}
	default:
		return NewUnstructured(kind)
	}
}

// WorkloadGVK is a kind of Function Mesh.
func WorkloadGVK(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: FunctionMeshGroup, Version: functionMeshVersion, Kind: kind}
}

// ResourceFor is the resource of one of MeasuredKinds.
func ResourceFor(kind string) schema.GroupResource {
	return schema.GroupResource{Group: GVK(kind).Group, Resource: strings.ToLower(kind) + "s"}
}

// KindFor is the inverse of ResourceFor; empty for other resources.
func KindFor(resource schema.GroupResource) string {
	for _, kind := range MeasuredKinds() {
		if ResourceFor(kind) == resource {
			return kind
		}
	}
	return ""
}

// NewUnstructured returns an empty object of the kind to read into.
func NewUnstructured(kind string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(GVK(kind))
	return object
}

// NewUnstructuredList is an empty list of objects of a kind.
func NewUnstructuredList(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(GVK(kind))
	return list
}

// WorkloadOf is the inverse of plan.FunctionMeshName; empty for other StatefulSets.
func WorkloadOf(statefulSet string) (kind, name string) {
	for _, kind := range WorkloadKinds() {
		if name, found := strings.CutSuffix(statefulSet, "-"+strings.ToLower(kind)); found && name != "" {
			return kind, name
		}
	}
	return "", ""
}
