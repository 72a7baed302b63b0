// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// scaled serves the scale subresource as an API server does, and records each write as "scale 7".
func (env *testEnv) scaled(ctx context.Context, c client.Client, object client.Object, patch client.Patch) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	var scale struct {
		Spec struct {
			Replicas *int64 `json:"replicas"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &scale); err != nil {
		return err
	}
	env.mu.Lock()
	defer env.mu.Unlock()
	env.writes = append(env.writes, fmt.Sprintf("scale %d", *scale.Spec.Replicas))
	if env.scaleFails != nil {
		return env.scaleFails
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return err
	}
	fixture.Spec(found)["replicas"] = *scale.Spec.Replicas
	env.written = append(env.written, *scale.Spec.Replicas)
	return c.Update(ctx, found)
}

// scaleManually sets the Function's replicas like a user with kubectl.
func (env *testEnv) scaleManually(replicas int64) {
	env.t.Helper()
	function := cluster.NewUnstructured(cluster.KindFunction)
	require.NoError(env.t, env.client.Get(env.t.Context(), fixture.Key(), function))
	fixture.Spec(function)["replicas"] = replicas
	require.NoError(env.t, env.client.Update(env.t.Context(), function))
}

// reportZero sets the conditions that the HPA controller reports for a target at zero that it did not scale there.
func (env *testEnv) reportZero() {
	env.t.Helper()
	hpa := env.autoscaler()
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "ScalingDisabled",
		Message: "scaling is disabled since the replica count of the target is zero",
	}}
	require.NoError(env.t, env.client.Status().Update(env.t.Context(), hpa))
}

func directPolicy() *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Actuator = v1alpha1.ActuatorDirect
	return p
}

// idlePolicy may scale to zero after 20 s.
func idlePolicy(actuator v1alpha1.Actuator) *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Actuator, p.Spec.MinReplicas = actuator, new(int32)
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{
		CooldownPeriodSeconds: new(int32(20)), StabilizationWindowSeconds: new(int32),
	}}
	p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	return p
}

func (env *testEnv) idles(published int64, polls int) {
	env.t.Helper()
	for range polls {
		env.after(testInterval)
		env.answer(0, published)
		env.reconcile()
	}
}

func TestDirectWritesAtOnceAndOnce(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), directPolicy(), fixture.ConfigMap())
	env.reconcile()
	env.answer(700, 10_000)
	require.Equal(t, []string{"scale 7", "patch status"}, env.reconcile())
	require.Equal(t, int64(7), env.replicas())
	require.Nil(t, env.autoscaler(), "there is one writer")
	require.Equal(t, []string{"patch status"}, env.reconcile(), "the replicas that there are now")
	require.Empty(t, env.reconcile())
	status, message := env.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Direct", status)
	require.Contains(t, message, "it is set in spec.actuator")
	require.Equal(t, v1alpha1.ActuatorDirect, env.policy().Status.Actuator.Type)
	require.Empty(t, env.policy().Status.HorizontalPodAutoscaler)
}

func TestAChangeToDirectRemovesTheAutoscalerFirst(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	env.firstDecision(700)
	require.NotNil(t, env.autoscaler())
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorDirect })
	require.Equal(t, []string{"delete " + plan.AutoscalerName("resize"), "scale 7", "patch status"}, env.reconcile())
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorHPA })
	require.Equal(t, []string{"apply", "patch status"}, env.reconcile())
	require.Equal(t, int64(7), env.replicas())
}

func TestDirectRetriesAndReportsFailures(t *testing.T) {
	env := newTestEnv(t, fixture.Function(), directPolicy(), fixture.ConfigMap())
	env.reconcile()
	env.answer(700, 10_000)
	env.scaleFails = apierrors.NewForbidden(autoscalingv2.Resource("functions/scale"), "resize", errors.New("needs patch"))
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "scaling Function resize to 7")
	status, message := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/ScaleFailed", status)
	require.Contains(t, message, "needs patch")
	env.scaleFails = nil
	require.Equal(t, []string{"scale 7", "patch status"}, env.reconcile())
	status, _ = env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
}

func TestDirectWritesNothingWhilePulsarIsUnknown(t *testing.T) {
	for _, current := range []int64{0, 1, 3} {
		t.Run(fmt.Sprint("at ", current), func(t *testing.T) {
			function := fixture.Function()
			fixture.Spec(function)["replicas"] = current
			env := newTestEnv(t, function, idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
			env.reconcile()
			for _, reason := range []error{backlog.ErrUnreachable, backlog.ErrTopicNotFound, backlog.ErrPartial} {
				env.after(time.Minute)
				env.store.Fail(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, fmt.Errorf("%w: in", reason))
				env.reconcile()
			}
			require.Equal(t, current, env.replicas())
			require.Empty(t, env.written)
		})
	}
}

func TestAFunctionGoesToZeroAndComesBackAtItsSize(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			function := fixture.Function()
			fixture.Spec(function)["replicas"] = int64(1)
			env := newTestEnv(t, function, idlePolicy(actuator), fixture.ConfigMap())
			env.firstDecision(0)
			env.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
				MessagesPerSecond: 10, Observations: 40, Variance: 1e-4, LearnedAt: env.now,
			}
			env.idles(10_000, 5)
			require.Equal(t, []int64{0}, env.written)
			if actuator == v1alpha1.ActuatorHPA {
				require.Equal(t, int32(1), *env.autoscaler().Spec.MinReplicas, "this cluster takes no less")
				env.reportZero()
				env.reconcile()
			}
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "True/ScaledToZero", status, message)
			require.Zero(t, *env.policy().Status.DesiredReplicas)
			require.Empty(t, env.reconcile())

			env.restart()
			require.Empty(t, env.reconcile(), "a leader that has just begun leaves it there")
			env.after(testInterval)
			env.answer(5_000, 15_000)
			writes := env.reconcile()
			require.Len(t, env.written, 2)
			require.Greater(t, env.written[1], int64(1), "not one and then more")
			if actuator == v1alpha1.ActuatorHPA {
				require.Equal(t, []string{"patch status", fmt.Sprint("scale ", env.written[1])}, writes,
					"the metric has to say so by then")
				env.after(soon)
				env.reconcile()
				status, message = env.condition(v1alpha1.ConditionReady)
				require.Equal(t, "True/Scaling", status, "the condition of zero has ended: %s", message)
			}
			env.after(soon)
			env.reconcile()
			require.Equal(t, env.written[1], int64(*env.policy().Status.DesiredReplicas))
		})
	}
}

func TestAWakeThatFailsIsTriedAgain(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(0)
	env := newTestEnv(t, function, idlePolicy(v1alpha1.ActuatorHPA), fixture.ConfigMap())
	env.reconcile()
	env.answer(500, 10_000)
	env.scaleFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "etcd is away")
	env.reportZero()
	env.scaleFails = nil
	require.Contains(t, env.reconcile(), "scale 1")
	require.Equal(t, int64(1), env.replicas())
}

func TestRaisingMinReplicasWakesWhatWasTakenToZero(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(1)
	env := newTestEnv(t, function, idlePolicy(v1alpha1.ActuatorHPA), fixture.ConfigMap())
	env.firstDecision(0)
	env.idles(10_000, 5)
	require.Zero(t, env.replicas())
	env.reportZero()
	env.reconcile()
	env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MinReplicas = new(int32(2)) })
	require.Contains(t, env.reconcile(), "scale 2")
	require.Equal(t, int64(2), env.replicas())
}

func TestRaisingMinReplicasWakesAfterAPauseToo(t *testing.T) {
	for name, mode := range map[string]v1alpha1.Mode{
		"paused": v1alpha1.ModePaused, "recommended only": v1alpha1.ModeRecommend,
	} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, idleFunction(), idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
			env.firstDecision(0)
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode, p.Spec.MinReplicas = mode, new(int32(2)) })
			env.reconcile()
			status, message := env.condition(v1alpha1.ConditionScalingActive)
			require.Equal(t, "Unknown/ScaledToZero", status)
			require.Equal(t, "scaled to zero by the policy, which does not scale it now", message)
			env.reconcile()
			require.Empty(t, env.reconcile())
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeAuto })
			env.reconcile()
			require.Equal(t, int64(2), env.replicas())
		})
	}
}

func TestZeroByHandSwitchesScalingOff(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			p := fixture.Policy()
			p.Spec.Actuator = actuator
			env := newTestEnv(t, fixture.Function(), p, fixture.ConfigMap())
			env.firstDecision(700)
			env.reconcile()
			env.scaleManually(0)
			env.written = nil
			for range 5 {
				env.after(testInterval)
				env.answer(5_000, 15_000)
				env.reconcile()
			}
			require.Empty(t, env.written)
			require.Zero(t, env.replicas())
			status, message := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "False/SwitchedOff", status)
			require.Contains(t, message, "set them to 1 or more")
			require.Nil(t, env.policy().Status.DesiredReplicas)

			env.scaleManually(1)
			env.after(testInterval)
			env.answer(700, 15_000)
			env.reconcile()
			require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas, "and on again")
		})
	}
}

func TestAPauseChangesNothingAndNeitherDoesItsEnd(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModePaused, v1alpha1.ModeRecommend} {
		t.Run(string(mode), func(t *testing.T) {
			env := newTestEnv(t, fixture.Function(), capacityPolicy(), fixture.ConfigMap())
			env.firstDecision(0)
			published := int64(10_000)
			busy := func(polls int) { // publishes 25/s to replicas that process 10/s each
				for range polls {
					env.after(testInterval)
					published += 25 * 15
					env.answer(0, published)
					env.reconcile()
				}
			}
			busy(10)
			before := *env.policy().Status.DesiredReplicas
			require.Equal(t, int32(3), before)
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = mode })
			env.reconcile()
			require.Nil(t, env.autoscaler())
			capacity := env.policy().Status.Capacity
			require.NotNil(t, capacity)
			busy(10)
			require.NotNil(t, env.policy().Status.Signals.PublishRate)
			require.Equal(t, mode == v1alpha1.ModePaused, env.policy().Status.DesiredReplicas == nil)
			require.Equal(t, int64(3), env.replicas())
			env.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeAuto })
			env.reconcile()
			for range 10 {
				busy(1)
				require.Equal(t, before, *env.policy().Status.DesiredReplicas)
			}
			require.NotNil(t, env.autoscaler())
			require.NotNil(t, env.policy().Status.Capacity)
			require.Equal(t, int64(3), env.replicas())
		})
	}
}
