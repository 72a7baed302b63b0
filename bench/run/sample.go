// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
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
	// maxSignalAge is the limit for the status of a policy, which is written at least every 5 minutes.
	maxSignalAge = 6 * time.Minute
)

// Sample is the state of a contender at a time. Nil is unknown.
type Sample struct {
	// Seconds since the load began.
	Seconds float64 `json:"seconds"`
	// SpecReplicas is spec.replicas, Pods exist and have not ended, and ReadyReplicas of them are ready.
	SpecReplicas  *int `json:"specReplicas"`
	Pods          *int `json:"pods"`
	ReadyReplicas *int `json:"readyReplicas"`
	// DesiredReplicas, Backlog and WaitSeconds are from the status of the policy; absent without a policy.
	DesiredReplicas *int     `json:"desiredReplicas,omitempty"`
	Backlog         *int64   `json:"backlog,omitempty"`
	WaitSeconds     *float64 `json:"waitSeconds,omitempty"`
	// Published and Done are messages since the start of the load. Done is unknown without an output.
	Published int64  `json:"published"`
	Done      *int64 `json:"done"`
	// P50Seconds is the median latency of the results since the previous sample; without an output it is the wait.
	P50Seconds *float64 `json:"p50Seconds"`
	// Problem is why replicas are unknown.
	Problem string `json:"problem,omitempty"`
}

// replicas are the counts of a scaled object.
type replicas struct{ spec, pods, ready int }

// readReplicas reads the scale of an object and the pods that it selects.
func readReplicas(ctx context.Context, kube client.Client, scaled *unstructured.Unstructured) (replicas, error) {
	what := scaled.GetKind() + " " + scaled.GetName()
	scale := &unstructured.Unstructured{}
	scale.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"})
	if err := kube.SubResource("scale").Get(ctx, scaled, scale); err != nil {
		return replicas{}, fmt.Errorf("reading the scale of %s: %w", what, err)
	}
	spec, _, err := unstructured.NestedInt64(scale.Object, "spec", "replicas")
	if err != nil {
		return replicas{}, fmt.Errorf("reading spec.replicas of %s: %w", what, err)
	}
	r := replicas{spec: int(spec)}
	text, _, _ := unstructured.NestedString(scale.Object, "status", "selector")
	if text == "" {
		return r, nil // Function Mesh has not created pods yet
	}
	selector, err := labels.Parse(text)
	if err != nil {
		return replicas{}, fmt.Errorf("reading status.selector of %s: %w", what, err)
	}
	var pods corev1.PodList
	err = kube.List(ctx, &pods, client.InNamespace(scaled.GetNamespace()),
		client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return replicas{}, fmt.Errorf("listing pods of %s: %w", what, err)
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

// observe takes a sample of all stages together. What one of them does not tell is unknown.
func observe(ctx context.Context, kube client.Client, of subject) Sample {
	sum := observeStage(ctx, kube, of.stages[0])
	for _, next := range of.stages[1:] {
		one := observeStage(ctx, kube, next)
		sum.SpecReplicas, sum.Pods = plus(sum.SpecReplicas, one.SpecReplicas), plus(sum.Pods, one.Pods)
		sum.ReadyReplicas = plus(sum.ReadyReplicas, one.ReadyReplicas)
		sum.DesiredReplicas, sum.Backlog = plus(sum.DesiredReplicas, one.DesiredReplicas), plus(sum.Backlog, one.Backlog)
		sum.WaitSeconds = plus(sum.WaitSeconds, one.WaitSeconds)
		sum.Problem = cmp.Or(sum.Problem, one.Problem)
	}
	return sum
}

func plus[T int | int64 | float64](a, b *T) *T {
	if a == nil || b == nil {
		return nil
	}
	return new(*a + *b)
}

// observeStage takes a sample. What it cannot read is unknown. Without a scaled object the status of the policy has the
// replicas.
func observeStage(ctx context.Context, kube client.Client, of stage) Sample {
	ctx, cancel := context.WithTimeout(ctx, sampleTimeout)
	defer cancel()
	var s Sample
	if of.scaled != nil {
		if r, err := readReplicas(ctx, kube, of.scaled); err != nil {
			s.Problem = err.Error()
		} else {
			s.SpecReplicas, s.Pods, s.ReadyReplicas = &r.spec, &r.pods, &r.ready
		}
	}
	if of.policy.Name == "" {
		return s
	}
	policy := &v1alpha1.AutoscalingPolicy{}
	err := kube.Get(ctx, of.policy, policy)
	status := policy.Status
	if of.scaled == nil {
		s.SpecReplicas, s.Pods, s.ReadyReplicas = count(status.SpecReplicas), count(status.SpecReplicas),
			count(status.RunningReplicas)
		if s.SpecReplicas == nil {
			s.Problem = cmp.Or(err, errors.New("the policy's status has no specReplicas")).Error()
		}
	}
	s.DesiredReplicas = count(status.DesiredReplicas)
	if signals := status.Signals; signals != nil {
		s.Backlog, s.WaitSeconds = signals.ReadyMessages, waitSeconds(*signals, time.Now())
	}
	return s
}

// count widens a number that may be unknown.
func count(of *int32) *int {
	if of == nil {
		return nil
	}
	return new(int(*of))
}

// waitSeconds is the wait of a message that is published now; nil if unknown.
func waitSeconds(signals v1alpha1.Signals, now time.Time) *float64 {
	switch {
	case now.Sub(signals.MeasuredAt.Time) > maxSignalAge:
		return nil
	case signals.Wait != nil:
		return new(signals.Wait.Seconds())
	case signals.ReadyMessages != nil && *signals.ReadyMessages == 0:
		return new(0.0)
	default:
		return nil
	}
}

// watch samples until ctx ends. Clients reject a request that would exceed the deadline of ctx, so an unknown last
// sample is dropped.
func watch(ctx context.Context, look func(context.Context) Sample) []Sample {
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	samples := []Sample{look(ctx)}
	for {
		select {
		case <-ctx.Done():
			if last := len(samples) - 1; last > 0 && samples[last].Problem != "" {
				samples = samples[:last]
			}
			return samples
		case <-ticker.C:
			if s := look(ctx); ctx.Err() == nil {
				samples = append(samples, s)
			}
		}
	}
}
