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

// MeshList is the list of a FunctionMesh's spec with the entries of a kind: functions, sinks or sources.
func MeshList(kind v1alpha1.WorkloadKind) string { return strings.ToLower(string(kind)) + "s" }

// throughMesh is the scaleTargetRef of the component that a child of a FunctionMesh belongs to, as YAML.
func throughMesh(child v1alpha1.ScaleTargetRef, mesh string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s, component: {kind: %s, name: %s}}",
		child.APIVersion, kindFunctionMesh, mesh, child.Kind, strings.TrimPrefix(child.Name, mesh+"-"))
}

// withoutReplicas says where the number of replicas is missing.
func withoutReplicas(o Observed) string {
	if o.Target.Scaling != ByMesh {
		return fmt.Sprintf("%s %s has no spec.replicas", o.Target.Ref.Kind, o.Target.Ref.Name)
	}
	ref := o.Policy.Spec.ScaleTargetRef
	return fmt.Sprintf("entry %s in spec.%s of %s %s has no replicas", ref.Component.Name, MeshList(ref.Component.Kind),
		ref.Kind, ref.Name)
}
