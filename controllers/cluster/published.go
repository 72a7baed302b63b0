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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// publishedTimeout bounds one check of a kind: an API server responds in milliseconds.
const publishedTimeout = 10 * time.Second

// resourceLists requests the resources of an API server each time, because a RESTMapper caches a kind for ever.
type resourceLists interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// published checks whether the API server still serves ScaledObjects. KEDA's CustomResourceDefinitions are deleted at
// its uninstall, and then the cache only becomes empty. Every replica runs it.
type published struct {
	resources resourceLists
	// installed reports whether the objects are in the cache: only then the check is needed.
	installed func(kind string) bool

	gone atomic.Bool
}

// watchPublished checks KEDA's kind as long as the manager runs.
func watchPublished(mgr manager.Manager, installed func(string) bool) (*published, error) {
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating a client that checks kind %s: %w", KindScaledObject, err)
	}
	s := &published{resources: resources, installed: installed}
	if err := mgr.Add(s); err != nil {
		return nil, fmt.Errorf("adding the check of kind %s: %w", KindScaledObject, err)
	}
	return s, nil
}

func (s *published) available() bool { return s.installed(KindScaledObject) && !s.gone.Load() }

// NeedLeaderElection is false: a new leader needs the result.
func (s *published) NeedLeaderElection() bool { return false }

// Start checks until the context ends.
func (s *published) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("published").WithValues("kind", GVK(KindScaledObject).String())
	failing := false
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		err := s.check(ctx)
		if err != nil && !failing && ctx.Err() == nil { // the first of several
			logger.Error(err, "checking whether a kind is still installed", "retryInterval", DiscoveryInterval.String())
		}
		failing = err != nil
	}, DiscoveryInterval)
	return nil
}

// check makes one request for an installed kind. A failed one changes nothing.
func (s *published) check(ctx context.Context) error {
	if !s.installed(KindScaledObject) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishedTimeout)
	defer cancel()
	kind := GVK(KindScaledObject)
	list, err := s.resources.ServerResourcesForGroupVersionWithContext(ctx, kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	s.gone.Store(err != nil || !creatable(list, kind.Kind))
	return nil
}

// creatable reports whether objects of a kind can be created. They cannot while a CustomResourceDefinition is being
// deleted, which lasts until the last finalizer of its objects is removed.
func creatable(list *metav1.APIResourceList, kind string) bool {
	return slices.ContainsFunc(list.APIResources,
		func(r metav1.APIResource) bool { return r.Kind == kind && slices.Contains(r.Verbs, "create") })
}
