// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// IndexScaledObject is the index of HorizontalPodAutoscalers by the ScaledObject that controls them.
const IndexScaledObject = "metadata.ownerReferences"

// IndexByScaledObject is the function of the index.
func IndexByScaledObject(object client.Object) []string {
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == cluster.KindScaledObject {
		return []string{owner.Name}
	}
	return nil
}

// transformAutoscaler keeps of KEDA's HorizontalPodAutoscalers the replicas and the conditions, and of all others the
// identity alone. The cache has every one of the cluster, and their metrics are large.
func transformAutoscaler(u *unstructured.Unstructured) {
	kept := map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
	}
	if len(IndexByScaledObject(u)) > 0 {
		status := picked(u.Object["status"], "currentReplicas", "desiredReplicas", "conditions")
		conditions, _ := status["conditions"].([]any)
		reasons := []any{}
		for _, condition := range conditions {
			reasons = append(reasons, picked(condition, "type", "reason"))
		}
		status["conditions"] = reasons
		kept["status"] = status
	}
	u.Object = kept
}
