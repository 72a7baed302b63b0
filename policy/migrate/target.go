// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Groups and kinds of what is translated.
const (
	groupFunctionMesh   = "compute.functionmesh.io"
	versionFunctionMesh = groupFunctionMesh + "/v1alpha1"
	kindDeployment      = "Deployment"
)

// objectKey is an object of a namespace; for a component of a FunctionMesh, its child.
type objectKey struct{ namespace, kind, name string }

func keyOf(namespace string, ref v1alpha1.ScaleTargetRef) objectKey {
	ref = plan.ReplicasOf(ref)
	return objectKey{namespace, ref.Kind, ref.Name}
}

// objects are what autoscalers may name.
type objects struct {
	byKey map[objectKey]*unstructured.Unstructured
	// unscalable is why no policy can scale an object, and ofWorker has the StatefulSets of Pulsar's function worker.
	unscalable map[objectKey]string
	ofWorker   map[objectKey]bool
}

func newObjects(in Input) objects {
	o := objects{map[objectKey]*unstructured.Unstructured{}, map[objectKey]string{}, map[objectKey]bool{}}
	for _, list := range [][]unstructured.Unstructured{in.Components, in.Workloads} {
		for i := range list {
			object := &list[i]
			o.byKey[objectKey{object.GetNamespace(), object.GetKind(), object.GetName()}] = object
		}
	}
	for namespace, selectables := range in.Selectables {
		for _, s := range selectables {
			key := keyOf(namespace, s.Ref)
			o.unscalable[key] = s.Unscalable
			o.ofWorker[key] = s.Ref.Kind == plan.KindStatefulSet
		}
	}
	return o
}

// scaled is the target of a policy in place of what an autoscaler names.
type scaled struct {
	ref v1alpha1.ScaleTargetRef
	// describes is true if the target itself says what it consumes.
	describes bool
}

// resolve finds the target: the Function of a StatefulSet, and the entry of a FunctionMesh for its child. impossible is
// why no policy can scale it.
func (o objects) resolve(namespace string, ref v1alpha1.ScaleTargetRef) (target scaled, impossible string) {
	object := o.byKey[objectKey{namespace, ref.Kind, ref.Name}]
	group, _, _ := strings.Cut(ref.APIVersion, "/")
	switch {
	case group == groupFunctionMesh && object == nil:
		return scaled{}, fmt.Sprintf("%s %s does not exist: delete the autoscaler", ref.Kind, ref.Name)
	case group == groupFunctionMesh && o.unscalable[keyOf(namespace, ref)] != "":
		return scaled{}, o.unscalable[keyOf(namespace, ref)]
	case group == groupFunctionMesh:
		return scaled{throughMesh(object, v1alpha1.ScaleTargetRef{
			APIVersion: versionFunctionMesh, Kind: ref.Kind, Name: ref.Name,
		}), true}, ""
	case ref.Kind == plan.KindStatefulSet && object != nil:
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil && v1alpha1.IsWorkload(owner.Kind) {
			return o.resolve(namespace, v1alpha1.ScaleTargetRef{
				APIVersion: versionFunctionMesh, Kind: owner.Kind, Name: owner.Name,
			})
		}
	}
	return scaled{ref, ref.Kind == plan.KindStatefulSet && o.ofWorker[keyOf(namespace, ref)]}, ""
}

// throughMesh is the entry of the FunctionMesh that owns the object, or else the object itself.
func throughMesh(object *unstructured.Unstructured, ref v1alpha1.ScaleTargetRef) v1alpha1.ScaleTargetRef {
	owner := metav1.GetControllerOfNoCopy(object)
	if owner == nil || owner.Kind != plan.KindFunctionMesh {
		return ref
	}
	return v1alpha1.ScaleTargetRef{
		APIVersion: versionFunctionMesh, Kind: plan.KindFunctionMesh, Name: owner.Name,
		Component: v1alpha1.MeshComponent{
			Kind: v1alpha1.WorkloadKind(ref.Kind), Name: strings.TrimPrefix(ref.Name, owner.Name+"-"),
		},
	}
}

// environment are the variables with a literal value in a container of the object, or in the first one. KEDA reads
// metadata from them.
func (o objects) environment(key objectKey, container string) map[string]string {
	object := o.byKey[key]
	if object == nil {
		return nil
	}
	var decoded struct { // of a Deployment or StatefulSet
		Spec struct {
			Template corev1.PodTemplateSpec `json:"template"`
		} `json:"spec"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &decoded); err != nil {
		return nil // the variables are unknown then, and the translation names them
	}
	values := map[string]string{}
	for i, c := range decoded.Spec.Template.Spec.Containers {
		if container == "" && i > 0 || container != "" && c.Name != container {
			continue
		}
		for _, variable := range c.Env {
			if variable.Value != "" {
				values[variable.Name] = variable.Value
			}
		}
	}
	return values
}

// controllerKind is the kind of the object's controller; empty for none.
func controllerKind(object metav1.Object) string {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.Kind
	}
	return ""
}
