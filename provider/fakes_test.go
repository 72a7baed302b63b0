// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fakePolicies has policies by name, for any namespace.
type fakePolicies map[string]*v1alpha1.AutoscalingPolicy

func (f fakePolicies) Policy(key types.NamespacedName) (*v1alpha1.AutoscalingPolicy, error) {
	if policy, ok := f[key.Name]; ok {
		return policy, nil
	}
	return nil, apierrors.NewNotFound(v1alpha1.GroupResource(), key.Name)
}

// fakeSignals is a function in place of Signals.
type fakeSignals func(resource schema.GroupResource, name string) (backlog.Reading, error)

func (f fakeSignals) Read(resource schema.GroupResource, key types.NamespacedName, _ backlog.Detail,
	_ time.Time,
) (backlog.Reading, error) {
	return f(resource, key.Name)
}

// fakeDecisionMaker is dead with the error, or alive.
type fakeDecisionMaker struct{ dead error }

func (f fakeDecisionMaker) Current(*v1alpha1.AutoscalingPolicy, time.Time) error { return f.dead }

// fakeLister lists these names for any kind.
type fakeLister []string

func (f fakeLister) Names(schema.GroupResource, string, labels.Selector) ([]string, error) {
	return f, nil
}

// measuredAt is the time of all measurements of these tests; now is a little later.
func measuredAt() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

func fakeNow() time.Time { return measuredAt().Add(7 * time.Second) }

// reading has a different number in every field.
func reading() backlog.Reading {
	return backlog.Reading{
		At:           measuredAt(),
		Total:        backlog.Known(120),
		Ready:        backlog.Known(100),
		Undispatched: backlog.Known(70),
		Delayed:      backlog.Known(20),
		Unacked:      backlog.Known(30),
		PublishRate:  backlog.Known(12.3456),
		ProcessRate:  backlog.Known(10.5),
		Window:       10200 * time.Millisecond,
		Consumers:    backlog.Known(3),
		InReplay:     backlog.Known(40),
		Bytes:        backlog.Known(123456),
		OldestAge:    backlog.Known(90.25),
		OldestAt:     measuredAt().Add(-time.Minute),
		DeliveryRate: backlog.Known(11.25),
		Throttled:    true,

		UnreadPartitions: backlog.Known(2),
		UnreadMessages:   backlog.Known(17),
		Instances: backlog.InstancesReading{
			At: measuredAt().Add(-time.Second), Window: 15 * time.Second,
			Silent: backlog.Known(
				1), InFlight: backlog.Known(5), Busy: backlog.Known(0.8765), ServiceTime: backlog.Known(0.0123),
			UserExceptionRate: backlog.Known(0.5), SystemExceptionRate: backlog.Known(0.25),
		},
	}
}

// decidedPolicy allows 2 to 10 replicas and has 7 desired replicas.
func decidedPolicy(change func(*v1alpha1.AutoscalingPolicy)) *v1alpha1.AutoscalingPolicy {
	desired := int32(7)
	policy := &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "orders", Generation: 3},
		Spec: v1alpha1.AutoscalingPolicySpec{ScalingSpec: v1alpha1.ScalingSpec{
			MinReplicas: new(int32(2)), MaxReplicas: 10, Mode: v1alpha1.ModeAuto,
		}},
		Status: v1alpha1.AutoscalingPolicyStatus{
			ObservedGeneration: 3,
			DesiredReplicas:    &desired,
			Signals:            &v1alpha1.Signals{MeasuredAt: metav1.NewTime(measuredAt())},
			Decision:           &v1alpha1.Decision{Time: metav1.NewTime(measuredAt().Add(time.Second))},
		},
	}
	if change != nil {
		change(policy)
	}
	return policy
}

// newTestProvider completes the config: policy and Function "orders" exist and everything is known.
func newTestProvider(config Config) *CustomMetrics {
	if config.Policies == nil {
		config.Policies = fakePolicies{"orders": decidedPolicy(nil)}
	}
	if config.Signals == nil {
		config.Signals = fakeSignals(func(resource schema.GroupResource, name string) (backlog.Reading, error) {
			if name != "orders" {
				return backlog.Reading{}, apierrors.NewNotFound(resource, name)
			}
			return reading(), nil
		})
	}
	if config.DecisionMaker == nil {
		config.DecisionMaker = fakeDecisionMaker{}
	}
	if config.Now == nil {
		config.Now = fakeNow
	}
	if config.Registerer == nil {
		config.Registerer = prometheus.NewRegistry()
	}
	return New(config)
}

func functions() schema.GroupResource {
	return schema.GroupResource{Group: "compute.functionmesh.io", Resource: "functions"}
}

func sinks() schema.GroupResource {
	return schema.GroupResource{Group: "compute.functionmesh.io", Resource: "sinks"}
}

func info(resource schema.GroupResource, metric string) cma.CustomMetricInfo {
	return cma.CustomMetricInfo{GroupResource: resource, Namespaced: true, Metric: metric}
}

func orders() types.NamespacedName { return types.NamespacedName{Namespace: "shop", Name: "orders"} }

// requireStatus checks code and text of an error, and that it makes no client wait.
func requireStatus(t testing.TB, err error, code int32, text string) {
	t.Helper()
	var status *apierrors.StatusError
	require.ErrorAs(t, err, &status)
	require.Equal(t, code, status.ErrStatus.Code)
	require.Equal(t, text, status.Error())
	require.Nil(t, status.ErrStatus.Details)
	_, waits := apierrors.SuggestsClientDelay(err)
	require.False(t, waits)
}
