// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// Objects finds policies, Functions, Sinks, Sources and StatefulSets of the function worker in the cache, by their
// labels. It is safe for concurrent use.
type Objects struct {
	reader *Reader
	// policiesRead reports whether the policies are in the cache.
	policiesRead func() bool
}

// NewObjects finds what the reader has, and policies once they are in the cache.
func NewObjects(reader *Reader, policiesRead func() bool) *Objects {
	return &Objects{reader: reader, policiesRead: policiesRead}
}

// Names returns the names of the namespace's objects with matching labels, sorted; backlog.ErrNoData while they are
// still being read, and an API server's NotFound for another resource.
func (o *Objects) Names(resource schema.GroupResource, namespace string, selector labels.Selector) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), CacheTimeout)
	defer cancel()
	options := []client.ListOption{
		client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy,
	}
	var names []string
	switch kind := cluster.KindFor(resource); {
	case resource == v1alpha1.GroupResource():
		if !o.policiesRead() {
			return nil, fmt.Errorf("%w: policies are being read", backlog.ErrNoData)
		}
		var list v1alpha1.AutoscalingPolicyList
		if err := o.reader.reader.List(ctx, &list, options...); err != nil {
			return nil, fmt.Errorf("listing policies: %w", err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	case kind != "":
		if !o.reader.Installed(kind) {
			return nil, notRead(kind)
		}
		objects, err := o.reader.List(ctx, kind, options...)
		if err != nil {
			return nil, err
		}
		for i := range objects {
			if object := &objects[i]; kind != cluster.KindStatefulSet || isOfWorker(object) {
				names = append(names, object.Name)
			}
		}
	default:
		return nil, apierrors.NewNotFound(resource, "*")
	}
	slices.Sort(names)
	return names, nil
}
