// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"slices"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// Transform drops what is not read before the cache stores an object: of a Function 2 KB stay of 15.
func Transform(object any) (any, error) {
	if u, ok := object.(*unstructured.Unstructured); ok &&
		(slices.Contains(cluster.CachedKinds(), u.GetKind()) || u.GetKind() == cluster.KindAutoscaler) {
		return Decode(u), nil
	}
	if fields, err := meta.Accessor(object); err == nil {
		fields.SetManagedFields(nil)
		dropLastApplied(fields)
	}
	switch o := object.(type) {
	case *autoscalingv2.HorizontalPodAutoscaler: // of its status only conditions are read; a sync changes the metrics
		o.Status = autoscalingv2.HorizontalPodAutoscalerStatus{Conditions: o.Status.Conditions}
	case *v1alpha1.AutoscalingPolicy: // decoding leaves room for 16
		o.Status.Conditions = slices.Clone(o.Status.Conditions)
	}
	return object, nil
}

// dropLastApplied drops the copy of an object that kubectl writes into an annotation.
func dropLastApplied(fields metav1.Object) {
	if annotations := fields.GetAnnotations(); annotations[corev1.LastAppliedConfigAnnotation] != "" {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		fields.SetAnnotations(annotations)
	}
}
