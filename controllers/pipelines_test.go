// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const piped = "persistent://public/default/piped"

// publisher is a policy of a Function that publishes to a topic.
func publisher(topic string) plan.Observed {
	observed := plan.Observed{
		Subject: plan.Subject{
			Policy: fixture.Policy(), Target: &plan.Target{
				Output: topic, Subscription: backlog.NewSubscription(fixture.Cluster(), "fn", fixture.Topic),
			},
		},
	}
	observed.Policy.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
	return observed
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// processing is a decision with an outlook.
func processing(now, expected float64) *policy.Decision {
	return &policy.Decision{Outlook: &policy.Outlook{Processed: now, Expected: expected, Stages: 1}}
}

func TestAFunctionLearnsWhatTheOneBeforePublishes(t *testing.T) {
	consumed := backlog.NewSubscription(fixture.Cluster(), "next", piped)
	elsewhere := consumed
	elsewhere.Cluster.AdminURL = "http://other:8080"
	pattern := consumed
	pattern.Patterns = []string{"persistent://public/default/.*"}
	for name, test := range map[string]struct {
		of       types.NamespacedName
		consumed backlog.Subscription
		known    bool
	}{
		"of its namespace":              {key("media", "next"), consumed, true},
		"not of another namespace":      {key("ads", "next"), consumed, false},
		"not of another Pulsar cluster": {key("media", "next"), elsewhere, false},
		"not by a pattern":              {key("media", "next"), pattern, false},
		"not if it is itself":           {key("media", "first"), consumed, false},
		"not if a topic has no known publisher": {
			key("media", "next"), backlog.NewSubscription(fixture.Cluster(), "next", piped, "other"), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipelines()
			p.publishes(key("media", "first"), publisher(piped), processing(10, 50))
			got := p.upstream(test.of, test.consumed)
			require.Equal(t, test.known, got != nil)
		})
	}
}

func TestWhatAFunctionPublishesIsUnknown(t *testing.T) {
	next, consumed := key("media", "next"), backlog.NewSubscription(fixture.Cluster(), "next", piped)
	for name, change := range map[string]func(p *pipelines, first types.NamespacedName){
		"after a reconcile without a decision": func(p *pipelines, first types.NamespacedName) {
			p.publishes(first, publisher(piped), nil)
		},
		"while its policy cannot be observed": func(p *pipelines, first types.NamespacedName) {
			p.unknown(first)
			p.unknown(key("media", "other"))
		},
		"once its policy is deleted": func(p *pipelines, first types.NamespacedName) { p.forget(first) },
		"once it publishes to another topic": func(p *pipelines, first types.NamespacedName) {
			p.publishes(first, publisher("persistent://public/default/moved"), processing(10, 50))
		},
		"while its decisions are not applied": func(p *pipelines, first types.NamespacedName) {
			observed := publisher(piped)
			observed.Policy.Spec.Mode = v1alpha1.ModeRecommend
			p.publishes(first, observed, processing(10, 50))
		},
		"while another autoscaler conflicts": func(p *pipelines, first types.NamespacedName) {
			observed := publisher(piped)
			observed.Violation = &plan.Violation{Condition: v1alpha1.ConditionAutoscalerApplied}
			p.publishes(first, observed, processing(10, 50))
		},
		"while its replicas do not follow": func(p *pipelines, first types.NamespacedName) {
			observed := publisher(piped)
			observed.Policy.Status.Conditions[0].Status = metav1.ConditionFalse
			p.publishes(first, observed, processing(10, 50))
		},
		"while its writes fail": func(p *pipelines, first types.NamespacedName) {
			observed := publisher(piped)
			observed.Policy.Status.Conditions[0].Status = metav1.ConditionUnknown
			p.publishes(first, observed, processing(10, 50))
		},
		"if one of two is unknown": func(p *pipelines, _ types.NamespacedName) {
			p.publishes(key("media", "second"), publisher(piped), nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, first := newPipelines(), key("media", "first")
			p.publishes(first, publisher(piped), processing(10, 50))
			require.NotNil(t, p.upstream(next, consumed))
			change(p, first)
			require.Nil(t, p.upstream(next, consumed))
			p.forget(first)
			p.forget(key("media", "second"))
			require.Empty(t, p.outlooks)
			require.Empty(t, p.outputs)
		})
	}
}

func TestConsumersDecideAgainWhenMoreIsExpected(t *testing.T) {
	p, first := newPipelines(), key("media", "first")
	for _, step := range []struct {
		now, expected float64
		more          bool
	}{{10, 10, false}, {10, 50, true}, {20, 50, false}, {30, 51, false}, {30, 60, true}, {60, 60, false}, {60, 90, true}} {
		topic, more := p.publishes(first, publisher(piped), processing(step.now, step.expected))
		require.Equal(t, step.more, more, "%v", step)
		require.Equal(t, backlog.Topic{Cluster: fixture.Cluster(), Name: piped}, topic)
	}
	p.publishes(key("media", "second"), publisher(piped), processing(5, 5))
	sum := p.upstream(key("media", "next"), backlog.NewSubscription(fixture.Cluster(), "next", piped))
	require.Equal(t, policy.Outlook{Processed: 65, Expected: 95, Stages: 1}, *sum)
}

func TestAReconcilePassesOnWhatFunctionsPublish(t *testing.T) {
	function := fixture.Function()
	require.NoError(t, unstructured.SetNestedField(function.Object, "piped", "spec", "output", "topic"))
	env := newTestEnv(t, function, capacityPolicy(), fixture.ConfigMap())
	env.reconcile()
	env.answerPartitions(backlog.Shared, 0)
	env.after(testInterval)
	env.answerPartitions(backlog.Shared, 150)
	env.reconcile()
	hpa := env.autoscaler()
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{
		{Type: autoscalingv2.ScalingActive, Status: corev1.ConditionTrue, Reason: "ValidMetricFound"},
	}
	require.NoError(t, env.client.Status().Update(t.Context(), hpa))
	env.reconcile()
	env.reconcile()
	next := backlog.NewSubscription(fixture.Cluster(), "next", piped)
	published := func() *policy.Outlook {
		return env.reconciler.pipelines.upstream(key(fixture.Namespace, "next"), next)
	}
	require.NotNil(t, published())
	require.InDelta(t, 10, published().Processed, 0.1)

	before := publisher(fixture.Topic)
	env.reconciler.pipelines.publishes(key(fixture.Namespace, "before"), before, processing(10, 50))
	memory := env.reconciler.memories.of(env.policy(), env.now)
	observed, err := env.reconciler.observe(t.Context(), env.policy(), memory)
	require.NoError(t, err)
	require.Equal(t, processing(10, 50).Outlook, plan.Input(observed).Upstream)

	env.readFails = errors.New("the API server does not answer")
	_, err = env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorIs(t, err, env.readFails)
	require.Nil(t, published(), "an outlook ends, and the consumers' replicas with it")
	env.readFails = nil
	env.reconcile()
	env.reconcile()
	require.NotNil(t, published())

	deleted := env.policy()
	deleted.Finalizers = []string{plan.Finalizer, "example.com/another"}
	require.NoError(t, env.client.Update(t.Context(), deleted))
	require.NoError(t, env.client.Delete(t.Context(), deleted))
	env.reconcile()
	require.Contains(t, env.policy().Finalizers, plan.Finalizer)
	require.Nil(t, published(), "it decides nothing more")

	deleted = env.policy()
	deleted.Finalizers = []string{"example.com/another"}
	require.NoError(t, env.client.Update(t.Context(), deleted))
	env.reconciler.pipelines.publishes(fixture.Key(), publisher(piped), processing(10, 50))
	require.NotNil(t, published())
	env.reconcile()
	require.Nil(t, published(), "without our finalizer")
}
