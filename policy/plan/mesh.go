// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
		child.APIVersion, KindFunctionMesh, mesh, child.Kind, strings.TrimPrefix(child.Name, mesh+"-"))
}

// MissingChild is an entry of a FunctionMesh without its child.
type MissingChild struct {
	Component v1alpha1.MeshComponent
	// AtZero is true if the entry has 0 replicas: Function Mesh's webhook then refuses to create the child.
	AtZero bool
}

// ownChildMissing reports whether the target itself does not exist yet.
func (t *Target) ownChildMissing(spec v1alpha1.AutoscalingPolicySpec) bool {
	return t.MissingChild != nil && t.MissingChild.Component == spec.ScaleTargetRef.Component
}

// createsChild reports whether the controller keeps at least one replica in the entry, so that Function Mesh can create
// the child. It does so only where it scales.
func (o Observed) createsChild() bool {
	return o.Target.ownChildMissing(o.Policy.Spec) && scales(o)
}

// childMissing reports the entry at which Function Mesh stops before it creates or scales the target; nil for none. It
// is False if the user has to fix it, and Unknown while Function Mesh creates the child.
func childMissing(o Observed) *metav1.Condition {
	if o.Target == nil || o.Target.MissingChild == nil {
		return nil
	}
	missing, mesh := *o.Target.MissingChild, o.Policy.Spec.ScaleTargetRef
	child := fmt.Sprintf("%s %s-%s", missing.Component.Kind, mesh.Name, missing.Component.Name)
	entry := fmt.Sprintf("entry %s in spec.%s of %s %s", missing.Component.Name, MeshList(missing.Component.Kind),
		KindFunctionMesh, mesh.Name)
	c := metav1.Condition{
		Type: v1alpha1.ConditionTargetFound, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonMeshBlocked,
	}
	if o.Target.ownChildMissing(o.Policy.Spec) {
		c.Reason = v1alpha1.ReasonChildMissing
	}
	switch {
	case !missing.AtZero:
		c.Message = fmt.Sprintf("Function Mesh has not created %s of %s yet: look at the log of its operator if that stays "+
			"so", child, entry)
	case o.createsChild():
		c.Message = fmt.Sprintf("%s has 1 replica until Function Mesh has created %s, which it cannot with 0", entry, child)
	default:
		c.Status = metav1.ConditionFalse
		c.Message = fmt.Sprintf("Function Mesh stops at %s, for it cannot create %s with 0 replicas: set replicas of the "+
			"entry to 1", entry, child)
	}
	return &c
}
