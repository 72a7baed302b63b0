// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// ScaledObjects reads from the cache how many replicas ScaledObjects have. It is safe for concurrent use.
type ScaledObjects struct {
	reader *target.Reader
	// unread says why the cache does not have ScaledObjects; nil if it has.
	unread func() error
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
	object, err := s.reader.Read(ctx, cluster.KindScaledObject, key)
	if err != nil {
		return 0, err
	}
	replicas, err := s.ofTarget(ctx, key.Namespace, object.ScaleTarget())
	if err == nil && replicas == nil {
		replicas, err = s.ofAutoscaler(ctx, key)
	}
	switch {
	case err != nil:
		return 0, err
	case replicas == nil:
		return 0, fmt.Errorf("%w: the HorizontalPodAutoscaler of ScaledObject %s has not synced yet",
			backlog.ErrNoData, key)
	}
	return *replicas, nil
}

// ofTarget is the target's own spec.replicas, if the cache has its kind with replicas. The autoscaler knows the
// default.
func (s *ScaledObjects) ofTarget(ctx context.Context, namespace string, ref *v1alpha1.ScaleTargetRef) (*int32, error) {
	if ref == nil || !slices.Contains(cluster.MeasuredKinds(), ref.Kind) || !s.reader.Installed(ref.Kind) ||
		ref.APIVersion != cluster.GVK(ref.Kind).GroupVersion().String() {
		return nil, nil //nolint:nilnil // none is a result
	}
	object, err := s.reader.Read(ctx, ref.Kind, types.NamespacedName{Namespace: namespace, Name: ref.Name})
	switch {
	case err != nil:
		return nil, err
	case object.Replicas() == nil && object.Invalid() != nil:
		return nil, fmt.Errorf("reading %s %s/%s: %w", ref.Kind, namespace, ref.Name, object.Invalid())
	}
	return object.Replicas(), nil
}

// ofAutoscaler is what the HorizontalPodAutoscaler read or wrote at its last sync.
func (s *ScaledObjects) ofAutoscaler(ctx context.Context, key types.NamespacedName) (*int32, error) {
	autoscalers, err := s.reader.List(ctx, cluster.KindAutoscaler, client.InNamespace(key.Namespace),
		client.MatchingFields{target.IndexScaledObject: key.Name})
	if err != nil {
		return nil, err
	}
	for i := range autoscalers {
		if replicas := autoscalers[i].Replicas(); replicas != nil || autoscalers[i].Invalid() != nil {
			return replicas, autoscalers[i].Invalid()
		}
	}
	return nil, nil //nolint:nilnil // none is a result
}
