// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func deploymentPolicy() *v1alpha1.AutoscalingPolicy {
	return fixture.ConsumerPolicy("apps/v1", "Deployment")
}

func TestADeploymentHasAnAutoscaler(t *testing.T) {
	env := newTestEnv(t, fixture.Deployment(), deploymentPolicy())
	env.firstDecision(700)
	hpa := env.autoscaler()
	require.NotNil(t, hpa)
	ref := hpa.Spec.ScaleTargetRef
	require.Equal(t, "apps/v1 Deployment resize", ref.APIVersion+" "+ref.Kind+" "+ref.Name)
	p := env.policy()
	require.Equal(t, "Deployment/resize", p.Status.Target)
	require.Equal(t, int32(3), *p.Status.SpecReplicas)
	require.Equal(t, int32(7), *p.Status.DesiredReplicas)
	status, message := env.condition(v1alpha1.ConditionTargetFound)
	require.Equal(t, "True/Found", status, message)
}

func TestADeploymentIsScaledDirectlyAndToZero(t *testing.T) {
	p := deploymentPolicy()
	p.Spec.Actuator = v1alpha1.ActuatorDirect
	env := newTestEnv(t, fixture.Deployment(), p)
	env.firstDecision(700)
	require.Equal(t, []int64{7}, env.written)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.MinReplicas = new(int32)
		p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{
			StabilizationWindowSeconds: new(int32), CooldownPeriodSeconds: new(int32(30)),
		}}
	})
	for range 12 {
		env.after(testInterval)
		env.answer(0, 10_000)
		env.reconcile()
	}
	require.Equal(t, int64(0), env.written[len(env.written)-1])
	env.after(testInterval)
	env.answer(500, 10_500)
	env.reconcile()
	require.Equal(t, int64(5), env.written[len(env.written)-1], "it wakes to what it needs")
}

func TestConflictsOfADeploymentAreReported(t *testing.T) {
	tests := map[string]struct {
		objects         []client.Object
		change          func(*testEnv)
		condition, want string
		message         string
	}{
		"a ScaledObject that does not name a kind": {
			objects:   []client.Object{nameless()},
			condition: v1alpha1.ConditionAutoscalerApplied, want: "False/ConflictingAutoscaler",
			message: "ScaledObject resize-so scales Deployment resize",
		},
		"a scale subresource that may not be written": {
			change: func(env *testEnv) {
				env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorDirect })
				env.scaleFails = apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "deployments"}, "resize", nil)
			},
			condition: v1alpha1.ConditionAutoscalerApplied, want: "Unknown/ScaleFailed",
			message: "grant the adapter get on deployments, and get and patch on deployments/scale, of API group apps",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, append(test.objects, fixture.Deployment(), deploymentPolicy())...)
			if test.change != nil {
				test.change(env)
			}
			env.reconcile()
			env.answer(700, 10_000)
			_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
			require.Equal(t, env.scaleFails != nil, err != nil)
			status, message := env.condition(test.condition)
			require.Equal(t, test.want, status, message)
			require.Contains(t, message, test.message)
		})
	}
}

// nameless is a ScaledObject without a target kind, which KEDA takes for a Deployment.
func nameless() client.Object {
	object := testScaledObject("", "", "resize")
	fixture.Spec(object)["scaleTargetRef"] = map[string]any{"name": "resize"}
	return object
}

// selectedPods are the pods of the Deployment, as knownPods names them.
func selectedPods() backlog.Object { return backlog.Object{Namespace: "media", Name: "app=resize"} }

// polls are followed by a reconcile each; the response has three consumers.
func (env *testEnv) polls(count int) {
	for range count {
		env.after(testInterval)
		env.answer(0, 10_000)
		env.reconcile()
	}
}

func TestOtherConsumersAreReported(t *testing.T) {
	p := deploymentPolicy()
	p.Spec.Actuator = v1alpha1.ActuatorHPA // which sets no replicas here
	env := newTestEnv(t, fixture.Deployment(), p)
	env.pods = knownPods{workload: selectedPods(), pods: policy.Pods{Running: new(int32(2))}}
	env.restart()
	env.firstDecision(0)
	env.polls(7)
	status, message := env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "True/AsExpected", status, message)
	env.polls(3)
	status, message = env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "False/SurplusConsumers", status)
	require.Equal(t, `subscription "public/default/resize" has 1 consumers beside those of Deployment resize, which may `+
		"disconnect at any time and do not count as capacity: disconnect them or give them a subscription of their own, or set "+
		"spec.subscription.consumersPerReplica to how many each replica opens", message)
	env.pods = knownPods{workload: selectedPods(), pods: policy.Pods{Running: new(int32(4))}}
	env.restart()
	env.reconcile()
	env.answer(0, 10_000)
	env.reconcile()
	status, _ = env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "True/AsExpected", status, "pods of a rolling update are its own")
}

// TestTooLargeConsumersPerReplicaIsReported: replicas would count as fewer that process more each.
func TestTooLargeConsumersPerReplicaIsReported(t *testing.T) {
	p := deploymentPolicy()
	p.Spec.Subscription.ConsumersPerReplica = 4
	p.Spec.Actuator = v1alpha1.ActuatorHPA // which sets no replicas here
	env := newTestEnv(t, fixture.Deployment(), p)
	env.pods = knownPods{workload: selectedPods(), pods: policy.Pods{Running: new(int32(3))}}
	env.restart()
	env.firstDecision(0)
	env.polls(7)
	status, message := env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "True/AsExpected", status, message)
	env.polls(3)
	status, message = env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "False/MissingConsumers", status)
	require.Equal(t, `subscription "public/default/resize" has 3 consumers, and the 3 running replicas of Deployment resize `+
		"should have 12: set spec.subscription.consumersPerReplica to how many each replica opens (1 instead of 4), or look "+
		"at the logs of replicas that do not consume", message)
	require.Contains(t, strings.Join(env.events(), "\n"), "Warning MissingConsumers")

	env.restart()
	env.polls(1)
	status, _ = env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "False/MissingConsumers", status, "in another process")
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Subscription.ConsumersPerReplica = 1 })
	env.polls(3)
	status, _ = env.condition(v1alpha1.ConditionSubscriptionVerified)
	require.Equal(t, "True/AsExpected", status)
}

func TestAnotherSubscriptionIsMeasuredAfresh(t *testing.T) {
	env := newTestEnv(t, fixture.Deployment(), deploymentPolicy())
	env.firstDecision(700)
	env.after(testInterval)
	env.answer(700, 11_000)
	env.reconcile()
	env.events()
	require.NotNil(t, env.policy().Status.Signals)
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Subscription.Topics[0] = "public/default/other" })
	env.reconcile()
	require.Nil(t, env.policy().Status.Signals, "they are of the other subscription")
	env.record("persistent://public/default/other", 100, 5)
	env.reconcile()
	require.Contains(t, strings.Join(env.events(), "\n"),
		"SubscriptionChanged spec.subscription names another subscription")
	env.reconcile()
	require.NotContains(t, strings.Join(env.events(), "\n"), "SubscriptionChanged", "once is enough")
}

// record stores a broker response for another topic.
func (env *testEnv) record(topic string, waiting, published int64) {
	env.store.Record(backlog.Topic{Cluster: fixture.Cluster(), Name: topic}, fixture.Sample(env.now, waiting, published))
}

func TestPodsAreOwnReplicas(t *testing.T) {
	two, three, five := int32(2), int32(3), int32(5)
	named := deploymentPolicy()
	tests := map[string]struct {
		observed plan.Observed
		pods     *policy.Pods
		want     *int32
	}{
		"a target with a subscription of its own": {plan.Observed{
			Subject: plan.Subject{Policy: fixture.Policy(), Target: &plan.Target{Replicas: &two}},
		}, &policy.Pods{Running: &three}, nil},
		"pods that are known": {plan.Observed{
			Subject: plan.Subject{Policy: named, Target: &plan.Target{Replicas: &two}},
		}, &policy.Pods{Running: &three}, &three},
		"pods that are not known": {plan.Observed{
			Subject: plan.Subject{Policy: named, Target: &plan.Target{Replicas: &two}},
		}, nil, &two},
		"pods of which little is known": {plan.Observed{
			Subject: plan.Subject{Policy: named, Target: &plan.Target{Replicas: &two, Reported: &five}},
		}, &policy.Pods{Updating: true}, &five},
		"fewer than are wanted": {plan.Observed{
			Subject: plan.Subject{Policy: named, Target: &plan.Target{Replicas: &five, Reported: &two}},
		}, nil, &five},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { require.Equal(t, test.want, test.observed.OwnReplicas(test.pods)) })
	}
}

// TestADeploymentIsFoundWithoutInstances: no pod is scraped for any measurement.
func TestADeploymentIsFoundWithoutInstances(t *testing.T) {
	env := newTestEnv(t, fixture.Deployment(), deploymentPolicy())
	observed, err := env.reconciler.observer.observe(t.Context(), env.policy(), env.now)
	require.NoError(t, err)
	require.Empty(t, observed.Target.Subscription.Workload)
}
