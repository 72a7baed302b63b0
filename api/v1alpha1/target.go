// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"slices"
)

// ScaleTargetRef names an object in the policy's namespace, as in a HorizontalPodAutoscaler, or a component of one.
//
// +kubebuilder:validation:XValidation:rule="(self.kind == 'FunctionMesh') == has(self.component)",message="component must be set with kind FunctionMesh, and only then"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('apps/') || (self.apiVersion == 'apps/v1' && self.kind in ['Deployment', 'StatefulSet', 'ReplicaSet'])",message="group apps has kinds Deployment, StatefulSet and ReplicaSet to scale, of version apps/v1"
// +kubebuilder:validation:XValidation:rule="!self.apiVersion.startsWith('compute.functionmesh.io/') || (self.apiVersion == 'compute.functionmesh.io/v1alpha1' && self.kind in ['Function', 'Sink', 'Source', 'FunctionMesh'])",message="group compute.functionmesh.io has kinds Function, Sink, Source and FunctionMesh to scale, of version compute.functionmesh.io/v1alpha1"
type ScaleTargetRef struct {
	// apiVersion is the API group and version of the object, such as compute.functionmesh.io/v1alpha1 or apps/v1.
	// Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion"`
	// kind is the kind of the object, such as Function or StatefulSet. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// name is the name of the object. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// component is the component of a FunctionMesh to scale. Required with kind FunctionMesh, and not allowed with others.
	// +optional
	Component MeshComponent `json:"component,omitzero"`
}

// MeshComponent names an entry of spec.functions, spec.sinks or spec.sources of a FunctionMesh.
type MeshComponent struct {
	// kind is where the component is in the mesh: Function for spec.functions, Sink for spec.sinks, Source for
	// spec.sources. Required.
	// +required
	Kind WorkloadKind `json:"kind"`
	// name is the name of the component, without the name of the mesh as a prefix. Required.
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

// WorkloadKinds are all of them.
func WorkloadKinds() []WorkloadKind {
	return []WorkloadKind{WorkloadFunction, WorkloadSink, WorkloadSource}
}

// IsWorkload reports whether a kind is one of them.
func IsWorkload(kind string) bool { return slices.Contains(WorkloadKinds(), WorkloadKind(kind)) }

// PulsarFunctionRef names a function, sink or source of a function worker, by tenant, namespace and name.
type PulsarFunctionRef struct {
	// kind is what the worker runs: Function, Sink or Source. Default: Function.
	// +optional
	// +kubebuilder:default=Function
	Kind WorkloadKind `json:"kind,omitempty"`
	// tenant is its Pulsar tenant. Default: public.
	// +optional
	// +kubebuilder:default=public
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Tenant string `json:"tenant,omitempty"`
	// namespace is its Pulsar namespace, without the tenant. Default: default.
	// +optional
	// +kubebuilder:default=default
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// name is the name of the function, sink or source. Required.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// workerURL is the function worker, http://host:port or https://host:port with no path, up to 2048 bytes, such as
	// http://pulsar-functions-worker:6750. Set it where the worker does not run in the brokers. The adapter must allow its
	// host (--allowed-pulsar-hosts). Default: the admin service of the cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^https?://([A-Za-z0-9_-]+([.][A-Za-z0-9_-]+)*[.]?|[[][0-9A-Fa-f:.]+[]])(:[0-9]{1,5})?/?$')",message="workerURL must be http://host:port or https://host:port, one host, with no path and no credentials"
	WorkerURL string `json:"workerURL,omitempty"`
}

// FullName is tenant/namespace/name, with the defaults of the fields.
func (r PulsarFunctionRef) FullName() string {
	return cmp.Or(r.Tenant, "public") + "/" + cmp.Or(r.Namespace, "default") + "/" + r.Name
}
