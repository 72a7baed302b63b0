// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group and version of every kind in this package, and the names of the policy in other programs.
const (
	Group   = "pulsar-autoscaler.io"
	Version = "v1alpha1"

	// KindAutoscalingPolicySet is the kind that creates policies for many objects.
	KindAutoscalingPolicySet = "AutoscalingPolicySet"
	// KindAutoscalingPolicy is the kind in manifests; ResourceAutoscalingPolicies the plural in URLs.
	KindAutoscalingPolicy       = "AutoscalingPolicy"
	ResourceAutoscalingPolicies = "autoscalingpolicies"
)

// GroupVersion returns pulsar-autoscaler.io/v1alpha1.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// GroupResource returns autoscalingpolicies.pulsar-autoscaler.io, as the metrics API spells the policy.
func GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: Group, Resource: ResourceAutoscalingPolicies}
}

// AddToScheme registers the kinds of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	gv := GroupVersion()
	scheme.AddKnownTypes(gv, &AutoscalingPolicy{}, &AutoscalingPolicyList{})
	scheme.AddKnownTypes(gv, &AutoscalingPolicySet{}, &AutoscalingPolicySetList{})
	metav1.AddToGroupVersion(scheme, gv)
	return nil
}
