// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// Scheme knows the kinds that this package reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, autoscalingv2.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// CacheOptions cache one Lease, and of other objects in the namespaces (all without any) the fields that
// target.Transform keeps. Without managed fields an object is half as large.
func CacheOptions(lease types.NamespacedName, namespaces []string) cache.Options {
	chosen := map[string]cache.Config{}
	for _, namespace := range namespaces {
		chosen[namespace] = cache.Config{}
	}
	return cache.Options{
		DefaultTransform:  target.Transform,
		DefaultNamespaces: chosen,
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{
					lease.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", lease.Name)},
				},
			},
		},
	}
}

// WatchPods adds the watch of pods to the manager; nil with NoInstanceMetrics. Without namespaces it is of all.
func WatchPods(mgr manager.Manager, mode target.InstanceMetrics, namespaces []string) (*Pods, error) {
	if mode != target.PodInstanceMetrics {
		return nil, nil //nolint:nilnil // none is a result
	}
	pods, err := NewPods(mgr, namespaces)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(pods); err != nil {
		return nil, fmt.Errorf("adding the watch of pods: %w", err)
	}
	return pods, nil
}
