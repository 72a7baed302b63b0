// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ResourceLists requests the resources of an API server each time, because a RESTMapper never forgets a kind.
type ResourceLists interface {
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// keda reports whether ScaledObjects are in the cache, and the API server still serves them.
func (c *Capabilities) keda() bool { return c.config.Installed(KindScaledObject) && !c.gone.Load() }

// checkPublished makes one request for ScaledObjects, if they are installed. KEDA's CustomResourceDefinitions are
// deleted at its uninstall, and then the cache only becomes empty. A failed request changes nothing; failing says
// whether the last one failed.
func (c *Capabilities) checkPublished(ctx context.Context, logger logr.Logger, failing bool) (failed bool) {
	if !c.config.Installed(KindScaledObject) {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, dryRunTimeout)
	defer cancel()
	kind := GVK(KindScaledObject)
	list, err := c.config.Resources.ServerResourcesForGroupVersionWithContext(limited, kind.GroupVersion().String())
	if err != nil && !apierrors.IsNotFound(err) {
		if !failing && ctx.Err() == nil { // the first of several
			logger.Error(err, "checking whether a kind is still installed", "kind", kind.String(), "retryInterval",
				refreshInterval.String())
		}
		return true
	}
	c.gone.Store(err != nil || !creatable(list, kind.Kind))
	return false
}

// creatable reports whether objects of a kind can be created. They cannot while a CustomResourceDefinition is being
// deleted, which lasts until the last finalizer of its objects is removed.
func creatable(list *metav1.APIResourceList, kind string) bool {
	return slices.ContainsFunc(list.APIResources,
		func(r metav1.APIResource) bool { return r.Kind == kind && slices.Contains(r.Verbs, "create") })
}
