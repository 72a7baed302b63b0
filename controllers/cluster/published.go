// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// publishedTimeout bounds one look for a kind: an API server answers in milliseconds.
const publishedTimeout = 10 * time.Second

// resourceLists are what an API server says it has, asked anew each time: a RESTMapper remembers a kind for ever.
type resourceLists interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// published checks whether objects of a cached kind can still be created. Its CustomResourceDefinition may be
// deleted, as KEDA's are when it is uninstalled, and then the cache merely falls empty. Every replica runs it.
type published struct {
	kind      string
	resources resourceLists
	// installed says that the objects are in memory, which is when there is something to look after.
	installed func(kind string) bool
	// every is DiscoveryInterval.
	every time.Duration

	gone atomic.Bool
}

// watchPublished looks after a kind as long as the manager runs.
func watchPublished(mgr manager.Manager, kind string, installed func(string) bool) (*published, error) {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making a client that looks for kind %s: %w", kind, err)
	}
	s := &published{kind: kind, resources: resources, installed: installed, every: DiscoveryInterval}
	if err := mgr.Add(s); err != nil {
		return nil, fmt.Errorf("adding the look for kind %s: %w", kind, err)
	}
	return s, nil
}

// available says that objects of the kind can be read and made.
func (s *published) available() bool { return s.installed(s.kind) && !s.gone.Load() }

// NeedLeaderElection is false: a new leader has to know.
func (s *published) NeedLeaderElection() bool { return false }

// Start looks until the context ends.
func (s *published) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("served").WithValues("kind", GVK(s.kind).String())
	ticker := time.NewTicker(s.every)
	defer ticker.Stop()
	for failing := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if !s.installed(s.kind) {
			continue
		}
		err := s.check(ctx)
		if err != nil && !failing && ctx.Err() == nil { // else it was said already
			logger.Error(err, "looking whether a kind is still installed", "lookAgainEvery", s.every.String())
		}
		failing = err != nil
	}
}

// check asks once. What was known stays where the answer tells nothing.
func (s *published) check(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, publishedTimeout)
	defer cancel()
	kind := GVK(s.kind)
	list, err := s.resources.ServerResourcesForGroupVersionWithContext(ctx, kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	s.gone.Store(err != nil || !creatable(list, kind.Kind))
	return nil
}

// creatable says that objects of a kind can be made: not while its CustomResourceDefinition is being deleted, which
// lasts for as long as a finalizer holds one of its objects back.
func creatable(list *metav1.APIResourceList, kind string) bool {
	return slices.ContainsFunc(list.APIResources,
		func(r metav1.APIResource) bool { return r.Kind == kind && slices.Contains(r.Verbs, "create") })
}
