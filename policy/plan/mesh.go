// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// MeshChild is the object that Function Mesh makes of the component of a FunctionMesh: <mesh>-<entry>.
//
// Source: Function Mesh's makeComponentName (controllers/function_mesh.go).
func MeshChild(ref v1alpha1.ScaleTargetRef) v1alpha1.ScaleTargetRef {
	return v1alpha1.ScaleTargetRef{
		APIVersion: ref.APIVersion, Kind: string(ref.Component.Kind), Name: ref.Name + "-" + ref.Component.Name,
	}
}

// MeshList is the list in the spec of a FunctionMesh that has the entries of a kind: functions, sinks or sources.
func MeshList(kind v1alpha1.WorkloadKind) string { return strings.ToLower(string(kind)) + "s" }

// throughMesh is the scaleTargetRef, as a user writes it, that scales a child of a FunctionMesh through it.
func throughMesh(child v1alpha1.ScaleTargetRef, mesh string) string {
	return fmt.Sprintf("{apiVersion: %s, kind: %s, name: %s, component: {kind: %s, name: %s}}",
		child.APIVersion, kindFunctionMesh, mesh, child.Kind, strings.TrimPrefix(child.Name, mesh+"-"))
}

// withoutReplicas says of what the number of replicas is missing.
func withoutReplicas(o Observed) string {
	if o.Target.Scaling != ByMesh {
		return fmt.Sprintf("%s %s has no spec.replicas", o.Target.Ref.Kind, o.Target.Ref.Name)
	}
	ref := o.Policy.Spec.ScaleTargetRef
	return fmt.Sprintf("entry %s in spec.%s of %s %s has no replicas", ref.Component.Name, MeshList(ref.Component.Kind),
		ref.Kind, ref.Name)
}
