// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const (
	sampleEvery = time.Second
	// sampleTimeout bounds the requests of a sample.
	sampleTimeout = 5 * time.Second
)

// Sample is what was seen of a contender at a time. Nil was not known.
type Sample struct {
	// Seconds since the load began.
	Seconds float64 `json:"seconds"`
	// SpecReplicas were asked for, Pods exist and have not ended, and ReadyReplicas of them are ready.
	SpecReplicas  *int `json:"specReplicas"`
	Pods          *int `json:"pods"`
	ReadyReplicas *int `json:"readyReplicas"`
	// DesiredReplicas and Backlog are from the status of the policy; absent for contenders without one.
	DesiredReplicas *int   `json:"desiredReplicas,omitempty"`
	Backlog         *int64 `json:"backlog,omitempty"`
	// Published and Done are messages since the load began.
	Published int64 `json:"published"`
	Done      int64 `json:"done"`
	// P50Seconds is the median latency of the results since the sample before.
	P50Seconds *float64 `json:"p50Seconds"`
	// Problem is why replicas are not known.
	Problem string `json:"problem,omitempty"`
}

// replicas of an entrant's Function.
type replicas struct{ spec, pods, ready int }

// readReplicas reads the scale of the Function and the pods that it selects.
func readReplicas(ctx context.Context, kube client.Client, e entrant) (replicas, error) {
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	if err := kube.SubResource("scale").Get(ctx, e.functionObject(), scale); err != nil {
		return replicas{}, fmt.Errorf("reading the scale of Function %s: %w", e.function(), err)
	}
	spec, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return replicas{}, fmt.Errorf("reading spec.replicas of Function %s: %w", e.function(), err)
	}
	r := replicas{spec: int(spec)}
	text, _, _ := unstructured.NestedString(scale.Object, "status", "selector")
	if text == "" {
		return r, nil // Function Mesh has made no pods yet
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return replicas{}, fmt.Errorf("reading status.selector of Function %s: %w", e.function(), err)
	}
	var pods corev1.PodList
	err = kube.List(ctx, &pods, client.InNamespace(e.namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return replicas{}, fmt.Errorf("listing pods of Function %s: %w", e.function(), err)
	}
	for i := range pods.Items {
		if phase := pods.Items[i].Status.Phase; phase == corev1.PodSucceeded || phase == corev1.PodFailed {
			continue
		}
		r.pods++
		if isReady(&pods.Items[i]) {
			r.ready++
		}
	}
	return r, nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// counter is what a sample takes of the load.
type counter interface {
	read() (published, done int64, p50 *float64)
}

// sample looks once. What cannot be read is not known.
func sample(ctx context.Context, kube client.Client, e entrant, c counter, begun time.Time) Sample {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var s Sample
	if r, err := readReplicas(ctx, kube, e); err != nil {
		s.Problem = err.Error()
	} else {
		s.SpecReplicas, s.Pods, s.ReadyReplicas = &r.spec, &r.pods, &r.ready
	}
	if e.Policy != nil {
		s.follow(ctx, kube, e)
	}
	s.Published, s.Done, s.P50Seconds = c.read()
	s.Seconds = time.Since(begun).Seconds()
	return s
}

// follow takes what the status of the policy says.
func (s *Sample) follow(ctx context.Context, kube client.Client, e entrant) {
	policy := &v1alpha1.AutoscalingPolicy{}
	if err := kube.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: e.function()}, policy); err != nil {
		return
	}
	if desired := policy.Status.DesiredReplicas; desired != nil {
		s.DesiredReplicas = new(int(*desired))
	}
	if signals := policy.Status.Signals; signals != nil {
		s.Backlog = signals.ReadyMessages
	}
}

// watch samples until ctx ends.
func watch(ctx context.Context, look func(context.Context) Sample) []Sample {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	samples := []Sample{look(ctx)}
	for {
		select {
		case <-ctx.Done():
			return samples
		case <-ticker.C:
			if s := look(ctx); ctx.Err() == nil {
				samples = append(samples, s)
			}
		}
	}
}
