// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// ScaledObjects reads from the cache how many replicas ScaledObjects have. It is safe for concurrent use.
type ScaledObjects struct {
	reader    client.Reader
	installed func(kind string) bool
	// unread says why the cache does not have ScaledObjects; nil if it has.
	unread func() error
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

// Replicas returns spec.replicas of the target from the cache, else from its HorizontalPodAutoscaler, as of its last
// sync (every 15 s by default). It fails with an API server's NotFound for a missing ScaledObject,
// backlog.ErrUnsupported without KEDA, and backlog.ErrNoData before the first sync.
func (s *ScaledObjects) Replicas(key types.NamespacedName) (int32, error) {
	if err := s.unread(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), target.CacheTimeout)
	defer cancel()
	object := cluster.NewUnstructured(cluster.KindScaledObject)
	if err := s.reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("reading ScaledObject %s: %w", key, err)
	}
	replicas, known, err := s.ofTarget(ctx, key.Namespace, target.ScaleTargetOf(object))
	if err == nil && !known {
		replicas, known, err = s.ofAutoscaler(ctx, key)
	}
	switch {
	case err != nil:
		return 0, err
	case !known:
		return 0, fmt.Errorf("%w: the HorizontalPodAutoscaler of ScaledObject %s has not synced yet",
			backlog.ErrNoData, key)
	}
	return replicas, nil
}

// ofTarget is the target's own spec.replicas, if the cache has its kind with replicas. The autoscaler knows the
// default.
func (s *ScaledObjects) ofTarget(ctx context.Context, namespace string, ref *v1alpha1.ScaleTargetRef) (replicas int32,
	known bool, err error,
) {
	if ref == nil || !slices.Contains(cluster.MeasuredKinds(), ref.Kind) || !s.installed(ref.Kind) ||
		ref.APIVersion != cluster.GVK(ref.Kind).GroupVersion().String() {
		return 0, false, nil
	}
	object := cluster.NewUnstructured(ref.Kind)
	err = s.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object,
		client.UnsafeDisableDeepCopy)
	if err != nil {
		return 0, false, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	number, known, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if err != nil {
		return 0, false, fmt.Errorf("decoding %s %s/%s: %w", ref.Kind, namespace, ref.Name, err)
	}
	return int32(number), known, nil //nolint:gosec // the field is an int32 of the definition
}

// ofAutoscaler is what the HorizontalPodAutoscaler read or wrote at its last sync.
func (s *ScaledObjects) ofAutoscaler(ctx context.Context, key types.NamespacedName) (replicas int32, known bool,
	err error,
) {
	if !s.installed(cluster.KindAutoscaler) {
		return 0, false, nil
	}
	list := cluster.NewUnstructuredList(cluster.KindAutoscaler)
	if err := s.reader.List(ctx, list, client.InNamespace(key.Namespace),
		client.MatchingFields{target.IndexScaledObject: key.Name},
		client.UnsafeDisableDeepCopy); err != nil {
		return 0, false, fmt.Errorf("listing HorizontalPodAutoscalers: %w", err)
	}
	for i := range list.Items {
		var decoded struct {
			Status autoscalerStatus `json:"status"`
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &decoded); err != nil {
			return 0, false,
				fmt.Errorf("decoding HorizontalPodAutoscaler %s/%s: %w", key.Namespace, list.Items[i].GetName(), err)
		}
		if replicas, known := decoded.Status.replicas(); known {
			return replicas, true, nil
		}
	}
	return 0, false, nil
}

// replicas are those of the target's scale subresource: what the last sync read or wrote. A target at zero has
// currentReplicas 0 and ScalingActive False; one that never was synced has no conditions.
//
// Source: Kubernetes 1.36, pkg/controller/podautoscaler/horizontal.go, reconcileAutoscaler: currentReplicas is
// scale.Spec.Replicas, and AbleToScale has reason SucceededRescale from the write of desiredReplicas to the next sync.
func (s autoscalerStatus) replicas() (replicas int32, known bool) {
	if len(s.Conditions) == 0 {
		return 0, false
	}
	for _, condition := range s.Conditions {
		switch {
		case condition.Type == "AbleToScale" && condition.Reason == "SucceededRescale":
			return s.DesiredReplicas, true
		case condition.Type == "AbleToScale" && condition.Reason == "FailedGetScale":
			return 0, false // this sync failed: the other fields are from an earlier one
		}
	}
	if s.CurrentReplicas == nil {
		return 0, true // the API server omits 0
	}
	return *s.CurrentReplicas, true
}
