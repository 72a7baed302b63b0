// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const (
	// writers create objects at the same time.
	writers = 16
	// pulsarConfig is the ConfigMap that all Functions name.
	pulsarConfig = "pulsar"
)

// scene has the objects of the benchmark, and notes what becomes of them.
type scene struct {
	client client.WithWatch
	works  map[string]*work
	// autoscalers, statuses and scales are what the API server was told about HorizontalPodAutoscalers, policies and Functions.
	autoscalers, statuses, scales ledger
}

func functionName(i int) string { return fmt.Sprintf("fn-%04d", i) }

func newWorks(n int, now time.Time) map[string]*work {
	works := make(map[string]*work, n)
	for i := range n {
		works[functionName(i)] = newWork(i, n, now)
	}
	return works
}

// servePulsar serves on a port of its own until ctx ends, and tells the URL.
func servePulsar(ctx context.Context, group *errgroup.Group, handler http.Handler) (url string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	group.Go(func() error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return server.Close()
	})
	return "http://" + listener.Addr().String(), nil
}

// createFunctions creates all Functions, with the status that Function Mesh gives them.
func (s *scene) createFunctions(ctx context.Context, adminURL string) error {
	if err := s.client.Create(ctx, mesh.PulsarConfig(stage.Namespace, pulsarConfig, adminURL, "pulsar://127.0.0.1:6650")); err != nil {
		return fmt.Errorf("creating the pulsarConfig: %w", err)
	}
	return s.each(ctx, func(ctx context.Context, name string) error {
		function := mesh.Function(stage.Namespace, name, mesh.FunctionConfig{
			Topics: []string{topicOf(name)}, PulsarConfig: pulsarConfig, Replicas: 1, ServiceTime: time.Second / capacity,
		})
		if err := s.client.Create(ctx, function); err != nil {
			return fmt.Errorf("creating Function %s: %w", name, err)
		}
		return s.reportReplicas(ctx, function)
	})
}

func (s *scene) createPolicies(ctx context.Context) error {
	return s.each(ctx, func(ctx context.Context, name string) error {
		p := &v1alpha1.AutoscalingPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name},
			Spec: v1alpha1.AutoscalingPolicySpec{
				ScaleTargetRef: v1alpha1.ScaleTargetRef{
					APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: name,
				},
				MinReplicas: new(int32(1)), MaxReplicas: 20, LatencyObjective: metav1.Duration{Duration: time.Minute},
			},
		}
		if err := s.client.Create(ctx, p); err != nil {
			return fmt.Errorf("creating policy %s: %w", name, err)
		}
		return nil
	})
}

// each does something for every Function, several at once.
func (s *scene) each(ctx context.Context, do func(ctx context.Context, name string) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for name := range s.works {
		group.Go(func() error { return do(ctx, name) })
	}
	return group.Wait()
}

// reportReplicas writes the part of the status that the scale subresource reads.
func (s *scene) reportReplicas(ctx context.Context, function *unstructured.Unstructured) error {
	replicas, _, err := unstructured.NestedInt64(function.Object, "spec", "replicas")
	if err != nil {
		return fmt.Errorf("reading spec.replicas of %s: %w", function.GetName(), err)
	}
	reported, found, err := unstructured.NestedInt64(function.Object, "status", "replicas")
	if err != nil {
		return fmt.Errorf("reading status.replicas of %s: %w", function.GetName(), err)
	}
	if found && reported == replicas {
		return nil
	}
	before := function.DeepCopy()
	function.Object["status"] = map[string]any{
		"replicas": replicas, "selector": "component=function,name=" + function.GetName(), "conditions": map[string]any{},
	}
	err = s.client.Status().Patch(ctx, function, client.MergeFrom(before))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of %s: %w", function.GetName(), err)
	}
	return nil
}

// watch starts to note what happens, and to follow the replicas of Functions.
func (s *scene) watch(ctx context.Context, group *errgroup.Group) {
	counting := func(l *ledger) func(watch.Event) error {
		return func(event watch.Event) error {
			l.take(event.Type, time.Now())
			return nil
		}
	}
	group.Go(func() error {
		return follow(ctx, s.client, &autoscalingv2.HorizontalPodAutoscalerList{}, stage.Namespace, counting(&s.autoscalers))
	})
	group.Go(func() error {
		return follow(ctx, s.client, &v1alpha1.AutoscalingPolicyList{}, stage.Namespace, counting(&s.statuses))
	})
	functions := &unstructured.UnstructuredList{}
	functions.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction + "List"))
	group.Go(func() error {
		return follow(ctx, s.client, functions, stage.Namespace, func(event watch.Event) error { return s.followReplicas(ctx, event) })
	})
}

// followReplicas is what Function Mesh and the nodes are, without the time that they take.
func (s *scene) followReplicas(ctx context.Context, event watch.Event) error {
	function, ok := event.Object.(*unstructured.Unstructured)
	if !ok || event.Type != watch.Modified {
		return nil
	}
	replicas, _, err := unstructured.NestedInt64(function.Object, "spec", "replicas")
	if err != nil {
		return fmt.Errorf("reading spec.replicas of %s: %w", function.GetName(), err)
	}
	reported, found, err := unstructured.NestedInt64(function.Object, "status", "replicas")
	if err != nil {
		return fmt.Errorf("reading status.replicas of %s: %w", function.GetName(), err)
	}
	if !found || reported == replicas {
		return nil
	}
	s.scales.take(watch.Modified, time.Now())
	s.works[function.GetName()].scale(int(replicas), time.Now())
	return s.reportReplicas(ctx, function)
}
