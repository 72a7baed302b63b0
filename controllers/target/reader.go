// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// CacheTimeout bounds a read from a cache that may not have synced yet.
const CacheTimeout = 100 * time.Millisecond

// Invalidf is a problem with what the target or the policy says.
func Invalidf(format string, args ...any) error {
	return plan.TargetProblem(v1alpha1.ReasonTargetInvalid, format, args...)
}

// IsInvalid reports whether the user has to fix something; any other error is worth a retry.
func IsInvalid(err error) bool { return errors.As(err, new(*plan.Violation)) }

// Reader reads objects from the cache, of kinds that may not be installed. Callers must not modify what it returns.
type Reader struct {
	reader    client.Reader
	installed func(kind string) bool
}

// NewReader reads from a cache that has the objects of the kinds that are installed.
func NewReader(reader client.Reader, installed func(kind string) bool) *Reader {
	return &Reader{reader: reader, installed: installed}
}

// Installed reports whether objects of the kind are in the cache.
func (r *Reader) Installed(kind string) bool { return r.installed(kind) }

// Object returns one object; nil when it does not exist or its kind is not installed.
func (r *Reader) Object(ctx context.Context, kind, namespace, name string) (*Cached, error) {
	if !r.installed(kind) {
		return nil, nil //nolint:nilnil // none is a result
	}
	object, err := r.Read(ctx, kind, types.NamespacedName{Namespace: namespace, Name: name})
	return object, client.IgnoreNotFound(err)
}

// Read returns one object of an installed kind. It fails with an API server's NotFound when there is none.
func (r *Reader) Read(ctx context.Context, kind string, key types.NamespacedName) (*Cached, error) {
	object := NewCached(kind)
	if err := r.reader.Get(ctx, key, object, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", kind, key, err)
	}
	return object, nil
}

// List returns the objects that the options select; none when the kind is not installed.
func (r *Reader) List(
	ctx context.Context,
	kind string,
	options ...client.ListOption,
) ([]Cached, error) {
	if !r.installed(kind) {
		return nil, nil
	}
	list := &CachedList{}
	list.SetGroupVersionKind(cluster.GVK(kind))
	if err := r.reader.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, fmt.Errorf("listing objects of kind %s: %w", kind, err)
	}
	return list.Items, nil
}

// Names returns the names of the namespace's policies, Functions, Sinks, Sources or StatefulSets of the function worker
// with matching labels, sorted. It fails while they are still being read, and with an API server's NotFound for another
// resource.
func (r *Reader) Names(resource schema.GroupResource, namespace string, selector labels.Selector) ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), CacheTimeout)
	defer cancel()
	options := []client.ListOption{
		client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector}, client.UnsafeDisableDeepCopy,
	}
	var names []string
	switch kind := cluster.KindFor(resource); {
	case resource == v1alpha1.GroupResource():
		var list v1alpha1.AutoscalingPolicyList
		if err := r.reader.List(ctx, &list, options...); err != nil {
			return nil, fmt.Errorf("listing policies: %w", err)
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
	case kind != "":
		if !r.installed(kind) {
			return nil, notRead(kind)
		}
		objects, err := r.List(ctx, kind, options...)
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

// Measurable fails with an API server's NotFound when there is no such object in the cache, and with a plan.Violation
// for a StatefulSet that the function worker did not create.
func (r *Reader) Measurable(kind string, key types.NamespacedName) error {
	if !r.installed(kind) {
		return notRead(kind)
	}
	ctx, cancel := context.WithTimeout(context.Background(), CacheTimeout)
	defer cancel()
	object, err := r.Read(ctx, kind, key)
	if err == nil && kind == cluster.KindStatefulSet {
		return measurable(object)
	}
	return err
}

func notRead(kind string) error {
	if kind == cluster.KindStatefulSet {
		return fmt.Errorf("%w: StatefulSets are being read", backlog.ErrNoData)
	}
	return fmt.Errorf("%w: objects of kind %s are being read, or Function Mesh is not installed", backlog.ErrNoData, kind)
}
