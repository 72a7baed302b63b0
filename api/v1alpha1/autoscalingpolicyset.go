// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicySet makes an AutoscalingPolicy for each object of its namespace whose labels match, as a ReplicaSet
// makes pods.
//
// It selects Functions, Sinks, Sources and FunctionMeshes of compute.functionmesh.io, and StatefulSets that Pulsar's
// function worker made (pf-...). A FunctionMesh that matches gets a policy for each of its components. A policy that
// names an object itself takes precedence, and of two sets the older.
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
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec AutoscalingPolicySetSpec `json:"spec"`
	// status is what matches, and which of it is not ready.
	// +optional
	Status AutoscalingPolicySetStatus `json:"status,omitempty"`
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

// AutoscalingPolicySetSpec is which objects get a policy, and which policy.
type AutoscalingPolicySetSpec struct {
	// selector of objects in the set's namespace, by their labels. As with a ReplicaSet, it must not be empty. To select
	// every object, use an expression that all satisfy: {key: pulsar-autoscaler.io/exclude, operator: DoesNotExist}.
	// It may change: an object that no longer matches loses its policy and keeps its replicas.
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && size(self.matchLabels) > 0 || has(self.matchExpressions) && size(self.matchExpressions) > 0",message="selector must not be empty; to select every object, use matchExpressions: [{key: pulsar-autoscaler.io/exclude, operator: DoesNotExist}]"
	Selector metav1.LabelSelector `json:"selector"`
	// template of the policies. The controller keeps them as the template says, and reverts edits of them.
	// +required
	Template AutoscalingPolicyTemplate `json:"template"`
}

// AutoscalingPolicyTemplate is an AutoscalingPolicy without a target.
type AutoscalingPolicyTemplate struct {
	// metadata that the policies have besides their names.
	// +optional
	Metadata AutoscalingPolicyTemplateMetadata `json:"metadata,omitzero"`
	// spec of the policies: all of an AutoscalingPolicy's spec but its target, which the selector finds.
	// +required
	Spec ScalingSpec `json:"spec"`
}

// AutoscalingPolicyTemplateMetadata are labels and annotations of policies.
type AutoscalingPolicyTemplateMetadata struct {
	// labels of the policies, at most 32.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('pulsar-autoscaler.io/'))",message="labels must not begin with pulsar-autoscaler.io/: those are the controller's"
	Labels map[string]LabelValue `json:"labels,omitempty"`
	// annotations of the policies, at most 32.
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

// AutoscalingPolicySetStatus is what matches, and which of it is not ready. An absent field is unknown, never zero.
type AutoscalingPolicySetStatus struct {
	// observedGeneration is the generation of the spec that this status answers.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// matched is the number of objects that the selector matches. Each component of a FunctionMesh counts as one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Matched *int32 `json:"matched,omitempty"`
	// governed is the number of those that have a policy of this set.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Governed *int32 `json:"governed,omitempty"`
	// ready is the number of those whose policy is Ready.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Ready *int32 `json:"ready,omitempty"`
	// notReady are matched objects that are not ready or not governed, each with the reason: the first 100, those that
	// need a fix first.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	NotReady []PolicySetObject `json:"notReady,omitempty"`
	// conditions: Ready, TargetFound, PoliciesApplied.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PolicySetObject is a matched object that is not ready or not governed.
type PolicySetObject struct {
	// kind of the object: Function, Sink, Source, FunctionMesh or StatefulSet.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// component of a FunctionMesh; for that kind alone.
	// +optional
	Component MeshComponent `json:"component,omitzero"`
	// policy is the name of the AutoscalingPolicy that governs it, of this set or not; absent where there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Policy string `json:"policy,omitempty"`
	// reason why it is not ready or not governed, in CamelCase: that of the policy's condition Ready, or the set's.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason"`
	// message for a person, with the fix where there is one.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}
