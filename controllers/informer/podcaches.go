// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of the objects that Pulsar's function worker creates: component is function, sink or source. The others are
// lossy, so they identify nothing.
//
// Source: Pulsar's KubernetesRuntime.getLabels.
const (
	labelWorkerComponent = "component"
	labelWorkerTenant    = "tenant"
	labelWorkerNamespace = "namespace"
	labelWorkerName      = "name"
)

// workerSelector selects the pods of Pulsar's function worker. Function Mesh's pods have some of those labels too.
func workerSelector() (labels.Selector, error) {
	selector := labels.NewSelector()
	for _, one := range []struct {
		key      string
		operator selection.Operator
		values   []string
	}{
		{labelWorkerComponent, selection.In, []string{"function", "sink", "source"}},
		{labelWorkerTenant, selection.Exists, nil},
		{labelWorkerNamespace, selection.Exists, nil},
		{labelWorkerName, selection.Exists, nil},
		{labelComponent, selection.DoesNotExist, nil},
	} {
		requirement, err := labels.NewRequirement(one.key, one.operator, one.values)
		if err != nil {
			return nil, fmt.Errorf("selecting pods of function workers: %w", err)
		}
		selector = selector.Add(*requirement)
	}
	return selector, nil
}

// isOfWorker is workerSelector for the labels that transformPod keeps.
func isOfWorker(of map[string]string) bool {
	return of[labelComponent] == "" && of[labelWorkerComponent] != "" && of[labelWorkerTenant] != ""
}

// podCaches presents two caches as one, because a watch has one selector. The embedded cache has Function Mesh's pods.
type podCaches struct {
	cache.Cache
	ofWorkers cache.Cache
}

// List lists from both.
func (c podCaches) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.Cache.List(ctx, list, options...); err != nil {
		return err
	}
	into, ok := list.(*corev1.PodList)
	if !ok {
		return fmt.Errorf("listing %T: this cache has only pods", list)
	}
	var more corev1.PodList
	if err := c.ofWorkers.List(ctx, &more, options...); err != nil {
		return err
	}
	into.Items = append(into.Items, more.Items...)
	return nil
}

// Start runs both.
func (c podCaches) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Cache.Start(ctx) })
	group.Go(func() error { return c.ofWorkers.Start(ctx) })
	return group.Wait()
}

// WaitForCacheSync waits for both.
func (c podCaches) WaitForCacheSync(ctx context.Context) bool {
	return c.Cache.WaitForCacheSync(ctx) && c.ofWorkers.WaitForCacheSync(ctx)
}

// IndexField indexes both.
func (c podCaches) IndexField(ctx context.Context, object client.Object, field string, by client.IndexerFunc) error {
	if err := c.Cache.IndexField(ctx, object, field, by); err != nil {
		return err
	}
	return c.ofWorkers.IndexField(ctx, object, field, by)
}
