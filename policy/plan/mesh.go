// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// MeshChild is the object that Function Mesh creates for a component of a FunctionMesh: <mesh>-<entry>.
//
// Source: Function Mesh's makeComponentName (controllers/function_mesh.go).
func MeshChild(ref v1alpha1.ScaleTargetRef) v1alpha1.ScaleTargetRef {
	return v1alpha1.ScaleTargetRef{
		APIVersion: ref.APIVersion, Kind: string(ref.Component.Kind), Name: ref.Name + "-" + ref.Component.Name,
	}
}

// ReplicasOf is the object that runs the replicas of a target: for a component of a FunctionMesh, its child.
func ReplicasOf(ref v1alpha1.ScaleTargetRef) v1alpha1.ScaleTargetRef {
	if ref.Component.Name != "" {
		return MeshChild(ref)
	}
	return ref
}

// MeshList is the list of a FunctionMesh's spec with the entries of a kind: functions, sinks or sources.
func MeshList(kind v1alpha1.WorkloadKind) string { return strings.ToLower(string(kind)) + "s" }

// throughMesh is the scaleTargetRef of the component that a child of a FunctionMesh belongs to, as YAML.
func throughMesh(child v1alpha1.ScaleTargetRef, mesh string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s, component: {kind: %s, name: %s}}",
		child.APIVersion, KindFunctionMesh, mesh, child.Kind, strings.TrimPrefix(child.Name, mesh+"-"))
}

// MissingChild is an entry of a FunctionMesh without its child.
type MissingChild struct {
	Component v1alpha1.MeshComponent
	// AtZero is true if the entry has 0 replicas: Function Mesh's webhook then refuses to create the child.
	AtZero bool
}

// OwnChildMissing reports whether the target itself does not exist yet.
func (t *Target) OwnChildMissing(spec v1alpha1.AutoscalingPolicySpec) bool {
	return t.MissingChild != nil && t.MissingChild.Component == spec.ScaleTargetRef.Component
}

// CreatesChild reports whether the controller keeps at least one replica in the entry, so that Function Mesh can create
// the child. It does so only where it scales.
func (o Observed) CreatesChild() bool {
	return o.Target.OwnChildMissing(o.Policy.Spec) && Scales(o)
}
