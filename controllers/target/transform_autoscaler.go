// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// IndexScaledObject is the index of HorizontalPodAutoscalers by the ScaledObject that they were made for.
const IndexScaledObject = "metadata.ownerReferences"

// IndexByScaledObject is the function of the index.
func IndexByScaledObject(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == cluster.KindScaledObject {
		return []string{owner.Name}
	}
	return nil
}

// transformAutoscaler keeps of KEDA's HorizontalPodAutoscalers how many replicas they saw, and of others who they are.
// All of the cluster come here, with the metrics that they saw.
func transformAutoscaler(u *unstructured.Unstructured) {
	slim := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
	}
	if len(IndexByScaledObject(u)) > 0 {
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
