// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicy keeps the messages of a Pulsar Function, Sink or batch Source within a latency objective at the
// least replicas.
//
// The controller reads the target's subscription from Pulsar, decides a number of replicas, and hands that number to
// a HorizontalPodAutoscaler of its own, which scales the target; or writes it itself, where that cannot be.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=autoscalingpolicies,shortName=pap
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Backlog",type=integer,JSONPath=`.status.signals.readyMessages`
// +kubebuilder:printcolumn:name="Wait",type=string,JSONPath=`.status.signals.wait`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.runningReplicas`
// +kubebuilder:printcolumn:name="Hold",type=string,JSONPath=`.status.decision.hold.reason`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Mode",type=string,priority=1,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Spec",type=integer,priority=1,JSONPath=`.status.specReplicas`
// +kubebuilder:printcolumn:name="Rate",type=string,priority=1,JSONPath=`.status.signals.publishRate`
// +kubebuilder:printcolumn:name="Capacity",type=string,priority=1,JSONPath=`.status.capacity.messagesPerSecond`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Decision",type=string,priority=1,JSONPath=`.status.decision.equation`
type AutoscalingPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants.
	// +required
	Spec AutoscalingPolicySpec `json:"spec"`
	// status is what was measured, decided and why.
	// +optional
	Status AutoscalingPolicyStatus `json:"status,omitempty"`
}

// AutoscalingPolicyList is a list of policies.
//
// +kubebuilder:object:root=true
type AutoscalingPolicyList struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AutoscalingPolicy `json:"items"`
}

// AutoscalingPolicySpec is what the user wants. Only a target and maxReplicas are required.
//
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef) != has(self.pulsarFunctionRef)",message="exactly one of scaleTargetRef and pulsarFunctionRef must be set"
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef) == has(oldSelf.scaleTargetRef) && has(self.pulsarFunctionRef) == has(oldSelf.pulsarFunctionRef)",message="the target cannot be changed; create another policy and delete this one"
// +kubebuilder:validation:XValidation:rule="!has(self.pulsarFunctionRef) || !has(self.minReplicas) || self.minReplicas > 0",message="minReplicas must be at least 1 with pulsarFunctionRef: the function worker does not run a function with no instance"
// +kubebuilder:validation:XValidation:rule="!has(self.scaleTargetRef) || has(self.subscription) || (self.scaleTargetRef.apiVersion == 'compute.functionmesh.io/v1alpha1' && self.scaleTargetRef.kind in ['Function', 'Sink', 'Source', 'FunctionMesh']) || (self.scaleTargetRef.apiVersion == 'apps/v1' && self.scaleTargetRef.kind == 'StatefulSet')",message="kind must be Function, Sink, Source or FunctionMesh of compute.functionmesh.io/v1alpha1, or StatefulSet of apps/v1; for any other object set spec.subscription"
// +kubebuilder:validation:XValidation:rule="!has(self.subscription) || has(self.scaleTargetRef)",message="subscription must be set with scaleTargetRef, and only then: other targets say themselves what they consume"
// +kubebuilder:validation:XValidation:rule="!has(self.subscription) || !has(self.scaleTargetRef) || !has(self.scaleTargetRef.component)",message="subscription cannot be set with component: the FunctionMesh says what its components consume"
// +kubebuilder:validation:XValidation:rule="!has(self.subscription) || self.subscription.type != 'Exclusive' || self.maxReplicas == 1",message="maxReplicas must be 1 with subscription type Exclusive, which lets one consumer connect: use Shared, Key_Shared or Failover"
// +kubebuilder:validation:XValidation:rule="!has(self.actuator) || self.actuator in ['Auto', 'Direct'] || !(has(self.pulsarFunctionRef) || (has(self.scaleTargetRef) && self.scaleTargetRef.kind == 'FunctionMesh'))",message="actuator must be Auto or Direct for a component of a FunctionMesh and with pulsarFunctionRef: these have no scale subresource for an autoscaler"
type AutoscalingPolicySpec struct {
	// scaleTargetRef names the object to scale, in the policy's own namespace. Supported: kinds Function, Sink and Source
	// (with batchSourceConfig) of compute.functionmesh.io/v1alpha1; a component of a FunctionMesh, with component; a
	// StatefulSet of apps/v1 that Pulsar's own function worker made (pf-...); and, with subscription, any object that has
	// a scale subresource, such as a Deployment. It cannot change: what was learned belongs to the target.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scaleTargetRef cannot be changed; create another policy and delete this one"
	ScaleTargetRef ScaleTargetRef `json:"scaleTargetRef,omitzero"`

	// pulsarFunctionRef names a function, sink or source that Pulsar's function worker runs as threads or processes of its
	// own: the policy changes its parallelism by the worker's REST API, which restarts all its instances at every change.
	// It cannot change.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pulsarFunctionRef cannot be changed; create another policy and delete this one"
	PulsarFunctionRef PulsarFunctionRef `json:"pulsarFunctionRef,omitzero"`

	// subscription is what the replicas of scaleTargetRef consume, where the object does not say so itself: the target is
	// then any object with a scale subresource, such as a Deployment, a StatefulSet or a Rollout, whose pods consume from
	// Pulsar. It may change: what was learned of the last one is forgotten.
	// +optional
	Subscription *Subscription `json:"subscription,omitempty"`

	ScalingSpec `json:",inline"`
}
