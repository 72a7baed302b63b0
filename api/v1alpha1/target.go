// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
)

// ScaleTargetRef names an object in the policy's namespace, as in a HorizontalPodAutoscaler, or a component of one.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'FunctionMesh') == has(self.component)",message="component must be set with kind FunctionMesh, and only then"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('apps/') || (self.apiVersion == 'apps/v1' && self.kind in ['Deployment', 'StatefulSet', 'ReplicaSet'])",message="group apps has kinds Deployment, StatefulSet and ReplicaSet to scale, of version apps/v1"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('compute.functionmesh.io/') || (self.apiVersion == 'compute.functionmesh.io/v1alpha1' && self.kind in ['Function', 'Sink', 'Source', 'FunctionMesh'])",message="group compute.functionmesh.io has kinds Function, Sink, Source and FunctionMesh to scale, of version compute.functionmesh.io/v1alpha1"
type ScaleTargetRef struct {
	// apiVersion is the API group and version of the object, such as compute.functionmesh.io/v1alpha1.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// kind of the object, such as Function.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name of the object.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// component of a FunctionMesh to scale; for that kind alone.
	// +optional
	Component MeshComponent `json:"component,omitzero"`
}

// MeshComponent names an entry of spec.functions, spec.sinks or spec.sources of a FunctionMesh.
type MeshComponent struct {
	// kind of the entry.
	// +required
	Kind WorkloadKind `json:"kind"`
	// name of the entry, without that of the mesh.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// WorkloadKind is a kind of Function Mesh that runs instances.
//
// +kubebuilder:validation:Enum=Function;Sink;Source
type WorkloadKind string

// The kinds that run instances.
const (
	WorkloadFunction WorkloadKind = "Function"
	WorkloadSink     WorkloadKind = "Sink"
	WorkloadSource   WorkloadKind = "Source"
)

// PulsarFunctionRef names what a function worker runs: tenant/namespace/name.
type PulsarFunctionRef struct {
	// kind of it. Default Function.
	// +optional
	// +kubebuilder:default=Function
	Kind WorkloadKind `json:"kind,omitempty"`
	// tenant of Pulsar. Default public.
	// +optional
	// +kubebuilder:default=public
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tenant string `json:"tenant,omitempty"`
	// namespace of Pulsar, without the tenant. Default default.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// name of the function, sink or source.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// workerURL is the function worker where it runs apart from the brokers, such as http://pulsar-functions-worker:6750.
	// Default: the admin service of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^https?://([A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?/?$')",message="workerURL must be http://host:port or https://host:port, one host, with no path and no credentials"
	WorkerURL string `json:"workerURL,omitempty"`
}

// FullName is tenant/namespace/name, with the defaults of the fields.
func (r PulsarFunctionRef) FullName() string {
	return cmp.Or(r.Tenant, "public") + "/" + cmp.Or(r.Namespace, "default") + "/" + r.Name
}
