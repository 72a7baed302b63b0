// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// watched are policies that an informer watches. It repeats a watch that fails.
type watched struct {
	selection
	cache    cache.Cache
	informer cache.Informer
	// first are the policies until the informer has them.
	first []v1alpha1.AutoscalingPolicy
	// changed and failures have the next change, and the next failure of the watch.
	changed  chan struct{}
	failures chan error
}

// watch prepares an informer of the policies. The client knows the kind.
func (s selection) watch(ctx context.Context, config *rest.Config, kube client.Client) (*watched, error) {
	w := &watched{selection: s, changed: make(chan struct{}, 1), failures: make(chan error, 1)}
	options := cache.Options{
		Scheme: kube.Scheme(), Mapper: kube.RESTMapper(), DefaultLabelSelector: s.labels,
		DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			select {
			case w.failures <- err:
			default: // an earlier one is not shown yet
			}
		},
	}
	if s.namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{s.namespace: {}}
	}
	var err error
	if w.cache, err = cache.New(config, options); err != nil {
		return nil, fmt.Errorf("preparing to watch the policies: %w", err)
	}
	w.informer, err = w.cache.GetInformer(ctx, &v1alpha1.AutoscalingPolicy{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("preparing to watch the policies: %w", err)
	}
	notify := func(any) {
		select {
		case w.changed <- struct{}{}:
		default: // the next drawing has this change too
		}
	}
	_, err = w.informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: notify, UpdateFunc: func(_, after any) { notify(after) }, DeleteFunc: notify,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing to watch the policies: %w", err)
	}
	return w, nil
}

// policies are those that the informer has.
func (w *watched) policies(ctx context.Context) ([]v1alpha1.AutoscalingPolicy, error) {
	if !w.informer.HasSynced() {
		return w.first, nil
	}
	return w.list(ctx, w.cache)
}

// draw draws the policies at each change until the context ends.
func (w *watched) draw(ctx context.Context, s *screen) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.cache.Start(ctx) })
	group.Go(func() error { return s.redraw(ctx, w.changed, w.failures, w.policies) })
	return group.Wait()
}
