// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// Kinds of autoscalers and of scale targets.
const (
	KindAutoscaler   = "HorizontalPodAutoscaler"
	KindScaledObject = "ScaledObject"
	KindStatefulSet  = "StatefulSet"
	// KindFunctionMesh owns the objects of its components.
	KindFunctionMesh = "FunctionMesh"
)

// Name is what the policy scales, for a sentence: Function resize, Function resize of FunctionMesh etl, or function
// public/default/resize of the function worker.
func Name(spec v1alpha1.AutoscalingPolicySpec) string {
	switch ref, ours := spec.ScaleTargetRef, spec.PulsarFunctionRef; {
	case ours.Name != "":
		return fmt.Sprintf("%s %s of the function worker", strings.ToLower(string(ours.Kind)), ours.FullName())
	case ref.Component.Name != "":
		return fmt.Sprintf("%s %s of FunctionMesh %s", ref.Component.Kind, ref.Component.Name, ref.Name)
	default:
		return ref.Kind + " " + ref.Name
	}
}

// ShortName is what the policy scales, for a column: Function/resize, FunctionMesh/etl:Function/resize or
// function:public/default/resize.
func ShortName(spec v1alpha1.AutoscalingPolicySpec) string {
	switch ref, ours := spec.ScaleTargetRef, spec.PulsarFunctionRef; {
	case ours.Name != "":
		return strings.ToLower(string(ours.Kind)) + ":" + ours.FullName()
	case ref.Component.Name != "":
		return fmt.Sprintf("%s/%s:%s/%s", ref.Kind, ref.Name, ref.Component.Kind, ref.Component.Name)
	default:
		return ref.Kind + "/" + ref.Name
	}
}

// Shorten cuts a text to a number of bytes, as the API counts, without splitting a character.
func Shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && text[most]&0xC0 == 0x80 {
		most--
	}
	return text[:most]
}

// AutoscalerName is the name of the policy's HorizontalPodAutoscaler. It ends in a hash, so it never equals that of a
// Function, Sink or Source (<cr>, <cr>-function): Function Mesh v0.27.2 deletes the one of a component's name
// (controllers/common.go, deleteHPA), or adopts it. The hash covers the whole policy name: long names stay distinct.
func AutoscalerName(policy string) string {
	const prefix, longest = "pap-", 63
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(policy)) // a hash.Hash never fails
	suffix := fmt.Sprintf("-%08x", hash.Sum32())
	return prefix + CutName(policy, longest-len(prefix)-len(suffix)) + suffix
}

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

// FunctionMeshName is the name of the StatefulSet and the autoscaler that Function Mesh creates for an object.
func FunctionMeshName(ref v1alpha1.ScaleTargetRef) string {
	return ref.Name + "-" + strings.ToLower(ref.Kind)
}

// LabelValue shortens a name to the length of a label value.
func LabelValue(name string) string { return CutName(name, validation.LabelValueMaxLength) }

// CutName shortens a name so that it is still one, also with a dash behind it.
func CutName(name string, most int) string {
	if len(name) <= most {
		return name
	}
	return strings.TrimRight(name[:most], "-.")
}

// Enumerate joins the first texts and adds the number of the others.
func Enumerate(texts []string, most int, separator string) string {
	if more := len(texts) - most; more > 0 {
		texts = append(texts[:most:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, separator)
}

// HasAll reports whether labels or annotations include all wanted ones.
func HasAll(has, wanted map[string]string) bool {
	for key, value := range wanted {
		if there, found := has[key]; !found || there != value {
			return false
		}
	}
	return true
}
