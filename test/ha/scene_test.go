// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package ha

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cmv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

const metricPath = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + stage.Namespace +
	"/autoscalingpolicies.pulsar-autoscaler.io/" + name + "/pulsar_function_desired_replicas"

// answer is the number that an adapter serves, without the aggregator.
func (s *scene) answer(ctx context.Context, a *stage.Adapter) (int64, error) {
	body, err := s.Ask(ctx, a, metricPath)
	if err != nil {
		return 0, err
	}
	var list cmv1beta2.MetricValueList
	if err := json.Unmarshal(body, &list); err != nil {
		return 0, fmt.Errorf("reading the metric: %w", err)
	}
	if len(list.Items) != 1 {
		return 0, fmt.Errorf("reading the metric: %d items", len(list.Items))
	}
	return list.Items[0].Value.Value(), nil
}

// passes counts the policies that an adapter has decided for, which only the holder of the Lease does.
func (s *scene) passes(ctx context.Context, a *stage.Adapter) (float64, error) {
	metrics, err := s.Metrics(ctx, a)
	return metrics.Sum("pulsar_autoscaler_policy_reconciles_total"), err
}

// roles waits until exactly one of both decides.
func (s *scene) roles(t *testing.T) (leader, other *stage.Adapter) {
	t.Helper()
	s.function.Await(t, "one adapter to decide", func(ctx context.Context) (bool, string, error) {
		first, err := s.passes(ctx, s.adapters[0])
		if err != nil {
			return false, "", err
		}
		second, err := s.passes(ctx, s.adapters[1])
		if err != nil {
			return false, "", err
		}
		leader, other = s.adapters[0], s.adapters[1]
		if second > 0 {
			leader, other = other, leader
		}
		return (first > 0) != (second > 0), fmt.Sprintf("%v and %v passes", first, second), nil
	})
	return leader, other
}

// route makes the aggregator call the given adapter, as a Service does when the other's pod is not ready.
func (s *scene) route(t *testing.T, a *stage.Adapter) {
	t.Helper()
	address, err := url.Parse(a.URL)
	require.NoError(t, err)
	for _, version := range cluster.CustomMetrics() {
		service := &unstructured.Unstructured{}
		service.SetAPIVersion("apiregistration.k8s.io/v1")
		service.SetKind("APIService")
		service.SetName(version.Version + "." + version.Group)
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"service":{"port":%s}}}`, address.Port()))
		require.NoError(t, s.Client.Patch(t.Context(), service, patch))
	}
}

// settle restarts adapters that ended, as a kubelet does, and waits for the normal state.
func (s *scene) settle(t *testing.T) {
	t.Helper()
	for _, a := range s.adapters {
		if a.Ended() != nil {
			require.NoError(t, a.Restart(t.Context()))
		}
	}
	s.function.AwaitPolicy(t, "ready, with a capacity", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Capacity != nil && meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.ConditionReady)
	})
	s.function.AwaitHPA(t, "ScalingActive=True")
}

// desired is the number in the status.
func (s *scene) desired(t *testing.T) int64 {
	t.Helper()
	p, err := s.function.Policy(t.Context())
	require.NoError(t, err)
	require.NotNil(t, p.Status.DesiredReplicas)
	return int64(*p.Status.DesiredReplicas)
}

// follow waits until the stand-in operator has seen the last change of spec.replicas: after the API server was away its
// watch is late.
func (s *scene) follow(t *testing.T) {
	t.Helper()
	s.function.Await(t, "the operator to see the last change", func(ctx context.Context) (bool, string, error) {
		now, err := s.function.Replicas(ctx)
		all := s.Mesh.Timeline(stage.Namespace, name)
		return err == nil && len(all) > 0 && int(now.Spec) == all[len(all)-1].Desired, fmt.Sprintf("%+v", now), err
	})
}

// requireUnchanged fails if spec.replicas changed since a time.
func (s *scene) requireUnchanged(t *testing.T, since time.Time) {
	t.Helper()
	s.follow(t)
	desired := s.Mesh.Desired(stage.Namespace, name, since)
	require.Len(t, desired, 1, "replicas changed: %v", desired)
	require.Positive(t, desired[0])
}

// requireRemembered makes the leader write a new status, and fails if the learned capacity is not in it.
func (s *scene) requireRemembered(t *testing.T, before *v1alpha1.Capacity) {
	t.Helper()
	p, err := s.function.Policy(t.Context())
	require.NoError(t, err)
	changed := p.DeepCopy()
	changed.Spec.LatencyObjective.Duration += time.Second
	require.NoError(t, s.Client.Patch(t.Context(), changed, client.MergeFrom(p)))
	s.function.Await(t, "the changed policy to be decided for", func(ctx context.Context) (bool, string, error) {
		if p, err = s.function.Policy(ctx); err != nil {
			return false, "", err
		}
		return p.Status.ObservedGeneration == changed.Generation,
			fmt.Sprint(p.Status.ObservedGeneration, " of ", changed.Generation), nil
	})
	after := p.Status.Capacity
	require.NotNil(t, after, "what was learned is forgotten")
	require.GreaterOrEqual(t, after.Observations, before.Observations, "observations start again")
	require.InEpsilon(t, before.MessagesPerSecond.AsApproximateFloat64(), after.MessagesPerSecond.AsApproximateFloat64(),
		0.1)
}

// backlogKnown is the condition of that name.
func (s *scene) backlogKnown(t *testing.T) metav1.Condition {
	t.Helper()
	p, err := s.function.Policy(t.Context())
	require.NoError(t, err)
	known := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionBacklogKnown)
	require.NotNil(t, known)
	return *known
}

func (s *scene) capacity(t *testing.T) *v1alpha1.Capacity {
	t.Helper()
	p, err := s.function.Policy(t.Context())
	require.NoError(t, err)
	require.NotNil(t, p.Status.Capacity)
	return p.Status.Capacity
}
