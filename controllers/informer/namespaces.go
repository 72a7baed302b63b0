// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// NewCache is cache.New, but reads in a namespace that the options leave out say which flag adds it.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	if options.Mapper != nil {
		options.Mapper = leaseMapper{options.Mapper}
	}
	found, err := cache.New(config, options)
	if err != nil || len(options.DefaultNamespaces) == 0 {
		return found, err
	}
	c := chosenCache{Cache: found, namespaces: map[string]bool{}}
	for namespace := range options.DefaultNamespaces {
		c.namespaces[namespace] = true
	}
	for _, object := range options.ByObject {
		for namespace := range object.Namespaces {
			c.namespaces[namespace] = true
		}
	}
	return c, nil
}

// chosenCache has the objects of some namespaces.
type chosenCache struct {
	cache.Cache
	namespaces map[string]bool
}

// Get implements client.Reader.
func (c chosenCache) Get(ctx context.Context, key client.ObjectKey, object client.Object,
	options ...client.GetOption,
) error {
	if err := c.check(key.Namespace); err != nil {
		return err
	}
	return c.Cache.Get(ctx, key, object, options...)
}

// List implements client.Reader.
func (c chosenCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := c.check((&client.ListOptions{}).ApplyOptions(options).Namespace); err != nil {
		return err
	}
	return c.Cache.List(ctx, list, options...)
}

func (c chosenCache) check(namespace string) error {
	if namespace == "" || c.namespaces[namespace] {
		return nil
	}
	return fmt.Errorf("%w: namespace %s is not read: add it to watchNamespaces of the chart (--watch-namespaces)",
		backlog.ErrUnsupported, namespace)
}
