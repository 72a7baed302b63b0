// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AutoscalingPolicy scales one target so that its messages meet a latency objective with as few replicas as possible.
// The target is a Pulsar Function, Sink or batch Source, or any scalable object that consumes from Pulsar.
//
// The controller reads the target's subscription from Pulsar and decides the number of replicas. A
// HorizontalPodAutoscaler, KEDA or the controller itself then scales the target, see spec.actuator. A policy needs a
// target and spec.maxReplicas; every other field has a default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=autoscalingpolicies,shortName=pap
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Backlog",type=integer,JSONPath=`.status.signals.readyMessages`
// +kubebuilder:printcolumn:name="Wait",type=string,JSONPath=`.status.signals.wait`
// +kubebuilder:printcolumn:name="Met",type=string,JSONPath=`.status.conditions[?(@.type=="ObjectiveMet")].status`
// +kubebuilder:printcolumn:name="Desired",type=integer,JSONPath=`.status.desiredReplicas`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.runningReplicas`
// +kubebuilder:printcolumn:name="Hold",type=string,JSONPath=`.status.decision.hold.reason`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Spec",type=integer,priority=1,JSONPath=`.status.specReplicas`
// +kubebuilder:printcolumn:name="Rate",type=string,priority=1,JSONPath=`.status.signals.publishRate`
// +kubebuilder:printcolumn:name="Capacity",type=string,priority=1,JSONPath=`.status.capacity.messagesPerSecond`
// +kubebuilder:printcolumn:name="Why",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Decision",type=string,priority=1,JSONPath=`.status.decision.equation`
type AutoscalingPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of an object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired behavior of the policy.
	// +required
	Spec AutoscalingPolicySpec `json:"spec"`
	// status is what the controller measured and decided, and why. Only the controller writes it. Default: condition Ready
	// is Unknown.
	// +optional
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "the adapter has not read this object yet: if that lasts, check that the adapter runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	Status AutoscalingPolicyStatus `json:"status,omitzero"`
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

// AutoscalingPolicySpec is the desired behavior of a policy. Only a target and maxReplicas are required.
//
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef) != has(self.pulsarFunctionRef)",message="exactly one of scaleTargetRef and pulsarFunctionRef must be set"
// +kubebuilder:validation:XValidation:rule="has(self.scaleTargetRef) == has(oldSelf.scaleTargetRef) && has(self.pulsarFunctionRef) == has(oldSelf.pulsarFunctionRef)",message="the target cannot be changed; create another policy and delete this one"
// +kubebuilder:validation:XValidation:rule="!has(self.pulsarFunctionRef) || !has(self.minReplicas) || self.minReplicas > 0",message="minReplicas must be at least 1 with pulsarFunctionRef: the function worker does not run a function with no instance"
// +kubebuilder:validation:XValidation:rule="!has(self.scaleTargetRef) || has(self.subscription) || (self.scaleTargetRef.apiVersion == 'compute.functionmesh.io/v1alpha1' && self.scaleTargetRef.kind in ['Function', 'Sink', 'Source', 'FunctionMesh']) || (self.scaleTargetRef.apiVersion == 'apps/v1' && self.scaleTargetRef.kind == 'StatefulSet')",message="kind must be Function, Sink, Source or FunctionMesh of compute.functionmesh.io/v1alpha1, or StatefulSet of apps/v1; for any other object set spec.subscription"
// +kubebuilder:validation:XValidation:rule="!has(self.subscription) || has(self.scaleTargetRef)",message="subscription must be set with scaleTargetRef, and only then: other targets define what they consume"
// +kubebuilder:validation:XValidation:rule="!has(self.subscription) || !has(self.scaleTargetRef) || !has(self.scaleTargetRef.component)",message="subscription cannot be set with component: the FunctionMesh defines what its components consume"
// +kubebuilder:validation:XValidation:rule="!has(self.subscription) || self.subscription.type != 'Exclusive' || self.maxReplicas == 1",message="maxReplicas must be 1 with subscription type Exclusive, which lets one consumer connect: use Shared, Key_Shared or Failover"
// +kubebuilder:validation:XValidation:rule="!has(self.actuator) || self.actuator in ['Auto', 'Direct'] || !(has(self.pulsarFunctionRef) || (has(self.scaleTargetRef) && self.scaleTargetRef.kind == 'FunctionMesh'))",message="actuator must be Auto or Direct for a component of a FunctionMesh and with pulsarFunctionRef: these have no scale subresource for an autoscaler"
type AutoscalingPolicySpec struct {
	// scaleTargetRef names the object to scale, in the namespace of the policy. Set exactly one of scaleTargetRef and
	// pulsarFunctionRef. Supported kinds are Function, Sink and Source (with batchSourceConfig) of
	// compute.functionmesh.io/v1alpha1, FunctionMesh with component, StatefulSet of apps/v1 that Pulsar's function worker
	// created (pf-...) and, with subscription, any kind that has a scale subresource, such as Deployment. It is immutable:
	// to scale another target, create another policy.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="scaleTargetRef cannot be changed; create another policy and delete this one"
	ScaleTargetRef ScaleTargetRef `json:"scaleTargetRef,omitzero"`

	// pulsarFunctionRef names a function, sink or source that Pulsar's function worker runs as threads or processes. The
	// controller sets its parallelism through the worker's REST API. Each change restarts all instances, so there is at
	// most one change per minute (--worker-update-interval of the adapter). It is immutable.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pulsarFunctionRef cannot be changed; create another policy and delete this one"
	PulsarFunctionRef PulsarFunctionRef `json:"pulsarFunctionRef,omitzero"`

	// subscription is what the replicas of scaleTargetRef consume. Set it for a target that does not describe its input,
	// such as a Deployment, a StatefulSet or a Rollout; Functions, Sinks and Sources describe theirs. After a change the
	// controller learns the capacity of a replica again.
	// +optional
	Subscription *Subscription `json:"subscription,omitempty"`

	ScalingSpec `json:",inline"`
}
