// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/command"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

var errWatchEnded = errors.New("the API server ended a watch")

// Follow reports each event of a kind until ctx ends. A watch that ends early may have missed events, so it is an
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

// FollowFunctions reports changes of the replicas of Functions until ctx ends. After the time that pods take to start
// it writes the status of each as Function Mesh does, after what scaled returned, if anything.
func FollowFunctions(ctx context.Context, writer client.WithWatch, namespace string, start time.Duration,
	scaled func(function string, replicas int) (started func(context.Context) error),
) error {
	type change struct {
		function *unstructured.Unstructured
		due      time.Time
		started  func(context.Context) error
	}
	const waiting = 10_000 // Functions of the largest benchmark
	changes := make(chan change, waiting)
	functions := &unstructured.UnstructuredList{}
	functions.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction + "List"))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer close(changes)
		return Follow(ctx, writer, functions, namespace, func(event watch.Event) error {
			function, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type != watch.Modified {
				return nil
			}
			now, err := read(function)
			if err != nil || !now.told || now.wanted == now.reported {
				return err
			}
			started := scaled(function.GetName(), int(now.wanted))
			select {
			case changes <- change{function, time.Now().Add(start), started}:
			case <-ctx.Done():
			}
			return nil
		})
	})
	group.Go(func() error {
		for one := range changes {
			if err := command.Pause(ctx, time.Until(one.due)); err != nil {
				return nil //nolint:nilerr // the caller has ended it
			}
			if one.started != nil {
				if err := one.started(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
			if err := report(ctx, writer, one.function); err != nil && ctx.Err() == nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// replicas are a Function's replicas in spec and status.
type replicas struct {
	wanted, reported int64
	// told is set if there is a status.
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

// report writes the part of a Function's status that the scale subresource reads.
func report(ctx context.Context, writer client.Client, function *unstructured.Unstructured) error {
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

// FunctionConfig is common to all Functions of a call.
type FunctionConfig struct {
	// AdminURLs of Pulsar, over which the Functions are spread.
	AdminURLs   []string
	Replicas    int32
	ServiceTime time.Duration
}

// CreateFunctions creates Functions with these names, each with its own topic and the status that Function Mesh writes,
// and the pulsarConfigs that they name.
func CreateFunctions(ctx context.Context, writer client.Client, names []string, c FunctionConfig) error {
	pulsarConfig := func(i int) string { return fmt.Sprintf("pulsar-%d", i%len(c.AdminURLs)) }
	for i, url := range c.AdminURLs {
		config := mesh.PulsarConfig(stage.Namespace, pulsarConfig(i), url, "pulsar://127.0.0.1:6650")
		if err := writer.Create(ctx, config); err != nil {
			return fmt.Errorf("creating a pulsarConfig: %w", err)
		}
	}
	functions := make([]*unstructured.Unstructured, 0, len(names))
	for i, name := range names {
		functions = append(functions, mesh.Function(stage.Namespace, name, mesh.FunctionConfig{
			Topics: []string{TopicOf(name)}, PulsarConfig: pulsarConfig(i), Replicas: max(1, c.Replicas),
			ServiceTime: c.ServiceTime,
		}))
	}
	return Each(ctx, functions, func(ctx context.Context, function *unstructured.Unstructured) error {
		err := writer.Create(ctx, function)
		if err == nil && c.Replicas == 0 { // Function Mesh creates none with 0, and allows it afterwards
			err = writer.Patch(ctx, function, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)))
		}
		if err != nil {
			return fmt.Errorf("creating Function %s: %w", function.GetName(), err)
		}
		return report(ctx, writer, function)
	})
}

// Each calls do for every item, several at once, and returns the first error.
func Each[T any](ctx context.Context, items []T, do func(ctx context.Context, item T) error) error {
	const atOnce = 16
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, item := range items {
		group.Go(func() error { return do(ctx, item) })
	}
	return group.Wait()
}
