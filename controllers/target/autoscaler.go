// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
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

// autoscaler has the fields of a ScaledObject, VerticalPodAutoscaler or HorizontalPodAutoscaler that are read.
type autoscaler struct {
	// target of a ScaledObject or VerticalPodAutoscaler; nil when it names none.
	target *v1alpha1.ScaleTargetRef
	// updateMode is that of a VerticalPodAutoscaler.
	updateMode string
	// scaledObject is set if a policy controls it: all its fields are compared or reported.
	scaledObject *plan.LiveScaledObject
	// replicas that a HorizontalPodAutoscaler of KEDA says that its target has.
	replicas *int32
}

// decodeAutoscaler keeps labels of the ScaledObjects of policies alone, because no others are read.
func decodeAutoscaler(c *Cached, object map[string]any) (err error) {
	c.autoscaler = &autoscaler{}
	isOurs := c.Kind == cluster.KindScaledObject && OwnedByPolicy(c)
	if !isOurs {
		c.Labels = nil
	}
	if c.Kind == cluster.KindAutoscaler {
		var decoded struct {
			Status autoscalerStatus `json:"status"`
		}
		if len(IndexByScaledObject(c)) > 0 { // others are not read
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, &decoded)
		}
		c.autoscaler.replicas = decoded.Status.replicas()
		return err
	}
	if isOurs {
		live := &plan.LiveScaledObject{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, live)
		live.ObjectMeta, c.autoscaler.scaledObject = c.ObjectMeta, live
	}
	c.autoscaler.updateMode, _, _ = unstructured.NestedString(object, "spec", "updatePolicy", "updateMode")
	for _, field := range []string{"targetRef", "scaleTargetRef"} {
		if ref, found, err := unstructured.NestedStringMap(object, "spec", field); err == nil && found {
			// Deployment of apps/v1 is KEDA's default.
			c.autoscaler.target = &v1alpha1.ScaleTargetRef{
				APIVersion: cmp.Or(ref["apiVersion"], "apps/v1"), Kind: cmp.Or(ref["kind"], "Deployment"), Name: ref["name"],
			}
		}
	}
	return err
}

// ScaleTarget of a ScaledObject or a VerticalPodAutoscaler; nil when it names none.
func (c *Cached) ScaleTarget() *v1alpha1.ScaleTargetRef {
	if c.autoscaler == nil {
		return nil
	}
	return c.autoscaler.target
}

// ScaledObject is a copy; if no policy controls the object, it has the metadata alone.
func (c *Cached) ScaledObject() *plan.LiveScaledObject {
	if c.autoscaler == nil || c.autoscaler.scaledObject == nil {
		return &plan.LiveScaledObject{ObjectMeta: c.ObjectMeta}
	}
	copied := *c.autoscaler.scaledObject
	return &copied
}

// autoscalerStatus has the fields of a HorizontalPodAutoscaler's status with its replicas.
type autoscalerStatus struct {
	CurrentReplicas *int32 `json:"currentReplicas"`
	DesiredReplicas int32  `json:"desiredReplicas"`
	Conditions      []struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	} `json:"conditions"`
}

// replicas are those of the target's scale subresource: what the last sync read or wrote; nil before the first. A
// target at zero has currentReplicas 0 and ScalingActive False; one that never was synced has no conditions.
//
// Source: Kubernetes 1.36, pkg/controller/podautoscaler/horizontal.go, reconcileAutoscaler: currentReplicas is
// scale.Spec.Replicas, and AbleToScale has reason SucceededRescale from the write of desiredReplicas to the next sync.
func (s autoscalerStatus) replicas() *int32 {
	if len(s.Conditions) == 0 {
		return nil
	}
	for _, condition := range s.Conditions {
		switch {
		case condition.Type == "AbleToScale" && condition.Reason == "SucceededRescale":
			return new(s.DesiredReplicas)
		case condition.Type == "AbleToScale" && condition.Reason == "FailedGetScale":
			return nil // this sync failed: the other fields are from an earlier one
		}
	}
	return cmp.Or(s.CurrentReplicas, new(int32(0))) // the API server omits 0
}
