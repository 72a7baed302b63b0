// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicySet creates an AutoscalingPolicy for each object of its namespace with matching labels, as a
// ReplicaSet creates pods.
//
// It selects Functions, Sinks, Sources and FunctionMeshes of compute.functionmesh.io, and StatefulSets that Pulsar's
// function worker created (pf-...). A FunctionMesh that matches gets a policy for each of its components. A policy that
// names an object takes precedence over a set, and the older of two sets over the newer.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=autoscalingpolicysets,shortName=paps
// +kubebuilder:printcolumn:name="Matched",type=integer,JSONPath=`.status.matched`
// +kubebuilder:printcolumn:name="Governed",type=integer,JSONPath=`.status.governed`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.ready`
// +kubebuilder:printcolumn:name="All Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.template.spec.mode`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Max",type=integer,priority=1,JSONPath=`.spec.template.spec.maxReplicas`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type AutoscalingPolicySet struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec selects the objects that get a policy, and has the template of those policies.
	// +required
	Spec AutoscalingPolicySetSpec `json:"spec"`
	// status is the result of the selector, and the matched objects that are not ready. Only the controller writes it.
	// Default: condition Ready is Unknown.
	// +optional
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "the adapter has not read this object yet: if that lasts, check that the adapter runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status AutoscalingPolicySetStatus `json:"status,omitzero"`
}

// AutoscalingPolicySetList is a list of policy sets.
//
// +kubebuilder:object:root=true
type AutoscalingPolicySetList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AutoscalingPolicySet `json:"items"`
}

// AutoscalingPolicySetSpec selects objects, and has the template of their policies.
type AutoscalingPolicySetSpec struct {
	// selector selects objects in the namespace of the set by their labels. It must not be empty. To select every object,
	// use an expression that all satisfy: {key: pulsar-autoscaler.io/exclude, operator: DoesNotExist}. An object that no
	// longer matches loses its policy and keeps its replicas.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="selector must not be empty; to select every object, use matchExpressions: [{key: pulsar-autoscaler.io/exclude, operator: DoesNotExist}]"
	Selector metav1.LabelSelector `json:"selector"`
	// template describes the policies. The controller applies changes of the template to all of them, and reverts edits of
	// a single one.
	// +required
	Template AutoscalingPolicyTemplate `json:"template"`
}

// AutoscalingPolicyTemplate is an AutoscalingPolicy without a target.
type AutoscalingPolicyTemplate struct {
	// metadata has the labels and annotations of the policies. The controller chooses their names.
	// +optional
	Metadata AutoscalingPolicyTemplateMetadata `json:"metadata,omitzero"`
	// spec is the spec of the policies without a target, which the selector finds.
	// +required
	Spec ScalingSpec `json:"spec"`
}

// AutoscalingPolicyTemplateMetadata are labels and annotations of policies.
type AutoscalingPolicyTemplateMetadata struct {
	// labels are the labels of the policies, at most 32. Keys must not begin with pulsar-autoscaler.io/.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('pulsar-autoscaler.io/'))",message="labels must not begin with pulsar-autoscaler.io/: those are the controller's"
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// annotations are the annotations of the policies, at most 32, each value up to 4096 bytes. Keys must not begin with
	// pulsar-autoscaler.io/.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('pulsar-autoscaler.io/'))",message="annotations must not begin with pulsar-autoscaler.io/: those are the controller's"
	Annotations map[string]AnnotationValue `json:"annotations,omitempty"`
}

// LabelValue is the value of a label.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// AnnotationValue is the value of an annotation.
//
// +kubebuilder:validation:MaxLength=4096
type AnnotationValue string

// AutoscalingPolicySetStatus is the result of the selector, and the matched objects that are not ready. An absent field
// is unknown, never zero.
type AutoscalingPolicySetStatus struct {
	// conditions of the set: Ready, TargetFound and PoliciesApplied. Stalled is True after one of the last two has been
	// False for a minute and only a user can fix that, and absent otherwise.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// observedGeneration is the generation of the spec that this status describes.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// matched is the number of objects that the selector matches. Each component of a FunctionMesh counts as one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Matched *int32 `json:"matched,omitempty"`
	// governed is the number of matched objects that have a policy of this set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Governed *int32 `json:"governed,omitempty"`
	// ready is the number of governed objects with a policy that is Ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready *int32 `json:"ready,omitempty"`
	// notReady lists up to 100 matched objects that are not ready or not governed, each with the reason. Objects that need
	// a fix come first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	NotReady []PolicySetObject `json:"notReady,omitempty"`
}

// PolicySetObject is a matched object that is not ready or not governed.
type PolicySetObject struct {
	// kind is the kind of the object: Function, Sink, Source, FunctionMesh or StatefulSet.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// component is the component of a FunctionMesh; absent for other kinds.
	// +optional
	Component MeshComponent `json:"component,omitzero"`
	// policy is the name of the AutoscalingPolicy that scales the object, of this set or not; absent if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy,omitempty"`
	// reason is why the object is not ready or not governed, in CamelCase, such as the reason of condition Ready of its
	// policy.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// message explains the reason, with the fix if there is one.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
