// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

var errWatchEnded = errors.New("the API server ended a watch")

// Follow tells of each event of a kind until ctx ends. A watch that ends early would have missed some, so it is an
// error.
func Follow(ctx context.Context, reader client.WithWatch, list client.ObjectList, namespace string,
	seen func(watch.Event) error,
) error {
	events, err := reader.Watch(ctx, list, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-events.ResultChan():
			switch {
			case ctx.Err() != nil:
				return nil
			case !open || event.Type == watch.Error:
				return fmt.Errorf("watching %T: %w", list, errWatchEnded)
			}
			if err := seen(event); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// FollowFunctions gives each Function the status that Function Mesh gives it, without the time that pods take, until
// ctx ends, and tells when the number of its replicas was changed.
func FollowFunctions(ctx context.Context, writer client.WithWatch, namespace string,
	scaled func(function string, replicas int),
) error {
	functions := &unstructured.UnstructuredList{}
	functions.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction + "List"))
	return Follow(ctx, writer, functions, namespace, func(event watch.Event) error {
		function, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != watch.Modified {
			return nil
		}
		now, err := read(function)
		if err != nil || !now.told || now.wanted == now.reported {
			return err
		}
		scaled(function.GetName(), int(now.wanted))
		return Report(ctx, writer, function)
	})
}

// replicas are what a Function says of them.
type replicas struct {
	wanted, reported int64
	// told says whether there is a status at all.
	told bool
}

func read(function *unstructured.Unstructured) (r replicas, err error) {
	if r.wanted, _, err = unstructured.NestedInt64(function.Object, "spec", "replicas"); err != nil {
		return r, fmt.Errorf("reading spec.replicas of %s: %w", function.GetName(), err)
	}
	if r.reported, r.told, err = unstructured.NestedInt64(function.Object, "status", "replicas"); err != nil {
		return r, fmt.Errorf("reading status.replicas of %s: %w", function.GetName(), err)
	}
	return r, nil
}

// Report writes the part of a Function's status that the scale subresource reads.
func Report(ctx context.Context, writer client.Client, function *unstructured.Unstructured) error {
	now, err := read(function)
	if err != nil || now.told && now.reported == now.wanted {
		return err
	}
	before := function.DeepCopy()
	function.Object["status"] = map[string]any{
		"replicas": now.wanted, "selector": "component=function,name=" + function.GetName(), "conditions": map[string]any{},
	}
	err = writer.Status().Patch(ctx, function, client.MergeFrom(before))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of %s: %w", function.GetName(), err)
	}
	return nil
}
