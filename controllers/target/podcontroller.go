// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// podController has the fields of a Deployment or StatefulSet that scaling needs, and all that the cache keeps of a
// Deployment.
type podController struct {
	Spec struct {
		Replicas *int32                `json:"replicas"`
		Selector *metav1.LabelSelector `json:"selector"`
	} `json:"spec"`
	Status struct {
		Replicas        int32 `json:"replicas"`
		UpdatedReplicas int32 `json:"updatedReplicas"`
	} `json:"status"`
}

func decodePodController(object *unstructured.Unstructured) (podController, error) {
	var p podController
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
		return podController{}, fmt.Errorf("decoding %s: %w", object.GetKind(), err)
	}
	return p, nil
}

// selector of its pods, as a scale subresource writes it; empty without one, because it would match all pods.
func (p podController) selector() (string, error) {
	if p.Spec.Selector == nil {
		return "", nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("reading spec.selector: %w", err)
	}
	return selector.String(), nil
}

// rollsOut reports whether a Deployment, which may be nil, still has pods of an older revision.
func rollsOut(deployment *unstructured.Unstructured) bool {
	if deployment == nil {
		return false
	}
	p, err := decodePodController(deployment)
	return err == nil && p.Status.UpdatedReplicas < p.Status.Replicas
}

// transformDeployment keeps what scaling needs: the cache has all Deployments of the cluster.
func transformDeployment(u *unstructured.Unstructured) {
	u.Object = map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
		"spec":     withGracePeriod(u, picked(u.Object["spec"], "replicas", "selector")),
		"status":   picked(u.Object["status"], "replicas", "updatedReplicas"),
	}
}
