// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// indexOwner is the index of HorizontalPodAutoscalers by the ScaledObject that they were made for.
const indexOwner = "metadata.ownerReferences"

// indexByScaledObject is the function of the index.
func indexByScaledObject(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == kindScaledObject {
		return []string{owner.Name}
	}
	return nil
}

// slimAutoscaler keeps of KEDA's HorizontalPodAutoscalers how many replicas they saw, and of others who they are. All
// of the cluster pass here, with the metrics that they saw.
func slimAutoscaler(u *unstructured.Unstructured) {
	slim := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": slimIdentity(u),
	}
	if len(indexByScaledObject(u)) > 0 {
		status := picked(u.Object["status"], "currentReplicas", "desiredReplicas", "conditions")
		conditions, _ := status["conditions"].([]any)
		kept := []any{}
		for _, condition := range conditions {
			kept = append(kept, picked(condition, "type", "reason"))
		}
		status["conditions"] = kept
		slim["status"] = status
	}
	u.Object = slim
}
