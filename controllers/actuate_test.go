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

// scaled does what an API server does for the scale subresource of an object, and notes "scale 7".
func (w *testWorld) scaled(ctx context.Context, c client.Client, object client.Object, patch client.Patch) error {
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
	w.writes = append(w.writes, fmt.Sprintf("scale %d", *scale.Spec.Replicas))
	if w.scaleFails != nil {
		return w.scaleFails
	}
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), found); err != nil {
		return err
	}
	fixture.Spec(found)["replicas"] = *scale.Spec.Replicas
	w.written = append(w.written, *scale.Spec.Replicas)
	return c.Update(ctx, found)
}

// byHand sets the Function's replicas as kubectl does.
func (w *testWorld) byHand(replicas int64) {
	w.t.Helper()
	function := cluster.NewUnstructured(cluster.KindFunction)
	require.NoError(w.t, w.client.Get(w.t.Context(), fixture.Key(), function))
	fixture.Spec(function)["replicas"] = replicas
	require.NoError(w.t, w.client.Update(w.t.Context(), function))
}

// saysOfZero is what the HPA controller says of a target at zero that it did not take there.
func (w *testWorld) saysOfZero() {
	w.t.Helper()
	hpa := w.autoscaler()
	hpa.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.ScalingActive, Status: corev1.ConditionFalse, Reason: "ScalingDisabled",
		Message: "scaling is disabled since the replica count of the target is zero",
	}}
	require.NoError(w.t, w.client.Status().Update(w.t.Context(), hpa))
}

func directPolicy() *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Actuator = v1alpha1.ActuatorDirect
	return p
}

// idlePolicy may go to zero after 20 s.
func idlePolicy(actuator v1alpha1.Actuator) *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Spec.Actuator, p.Spec.MinReplicas = actuator, new(int32)
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{
		CooldownPeriodSeconds: new(int32(20)), StabilizationWindowSeconds: new(int32),
	}}
	p.Spec.Strategies = []v1alpha1.Strategy{{Type: v1alpha1.StrategyCapacity}}
	return p
}

// idles until nothing has happened for so long, with an answer each interval.
func (w *testWorld) idles(published int64, polls int) {
	w.t.Helper()
	for range polls {
		w.after(testInterval)
		w.answer(0, published)
		w.reconcile()
	}
}

func TestDirectWritesAtOnceAndOnce(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), directPolicy(), fixture.ConfigMap())
	w.reconcile()
	w.answer(700, 10_000)
	require.Equal(t, []string{"scale 7", "patch status"}, w.reconcile())
	require.Equal(t, int64(7), w.replicas())
	require.Nil(t, w.autoscaler(), "there is one writer")
	require.Equal(t, []string{"patch status"}, w.reconcile(), "the replicas that there are now")
	require.Empty(t, w.reconcile())
	status, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
	require.Equal(t, "True/Direct", status)
	require.Contains(t, message, "spec.actuator says so")
	require.Equal(t, v1alpha1.ActuatorDirect, w.policy().Status.Actuator.Type)
	require.Empty(t, w.policy().Status.HorizontalPodAutoscaler)
}

func TestAChangeToDirectRemovesTheAutoscalerFirst(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), fixture.Policy(), fixture.ConfigMap())
	w.settle(700)
	require.NotNil(t, w.autoscaler())
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorDirect })
	require.Equal(t, []string{"delete " + plan.AutoscalerName("resize"), "scale 7", "patch status"}, w.reconcile())
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Actuator = v1alpha1.ActuatorHPA })
	require.Equal(t, []string{"apply", "patch status"}, w.reconcile())
	require.Equal(t, int64(7), w.replicas())
}

func TestDirectTriesAgainWhatFailedAndSaysSo(t *testing.T) {
	w := newTestWorld(t, fixture.Function(), directPolicy(), fixture.ConfigMap())
	w.reconcile()
	w.answer(700, 10_000)
	w.scaleFails = apierrors.NewForbidden(autoscalingv2.Resource("functions/scale"), "resize", errors.New("needs patch"))
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "scaling Function resize to 7")
	status, message := w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/ScaleFailed", status)
	require.Contains(t, message, "needs patch")
	w.scaleFails = nil
	require.Equal(t, []string{"scale 7", "patch status"}, w.reconcile())
	status, _ = w.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
}

func TestDirectWritesNothingWhilePulsarIsUnknown(t *testing.T) {
	for _, current := range []int64{0, 1, 3} {
		t.Run(fmt.Sprint("at ", current), func(t *testing.T) {
			function := fixture.Function()
			fixture.Spec(function)["replicas"] = current
			w := newTestWorld(t, function, idlePolicy(v1alpha1.ActuatorDirect), fixture.ConfigMap())
			w.reconcile()
			for _, reason := range []error{backlog.ErrUnreachable, backlog.ErrTopicNotFound, backlog.ErrPartial} {
				w.after(time.Minute)
				w.store.Fail(backlog.Topic{Cluster: fixture.Cluster(), Name: fixture.Topic}, fmt.Errorf("%w: in", reason))
				w.reconcile()
			}
			require.Equal(t, current, w.replicas())
			require.Empty(t, w.written)
		})
	}
}

func TestAFunctionGoesToZeroAndComesBackAtItsSize(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			function := fixture.Function()
			fixture.Spec(function)["replicas"] = int64(1)
			w := newTestWorld(t, function, idlePolicy(actuator), fixture.ConfigMap())
			w.settle(0)
			w.reconciler.memories.byKey[fixture.Key()].resume.Capacity = &policy.LearnedCapacity{
				MessagesPerSecond: 10, Observations: 40, Variance: 1e-4, LearnedAt: w.now,
			}
			w.idles(10_000, 5)
			require.Equal(t, []int64{0}, w.written)
			if actuator == v1alpha1.ActuatorHPA {
				require.Equal(t, int32(1), *w.autoscaler().Spec.MinReplicas, "this cluster takes no less")
				w.saysOfZero()
				w.reconcile()
			}
			status, message := w.condition(v1alpha1.ConditionReady)
			require.Equal(t, "True/ScaledToZero", status, message)
			require.Zero(t, *w.policy().Status.DesiredReplicas)
			require.Empty(t, w.reconcile())

			w.restart()
			require.Empty(t, w.reconcile(), "a leader that has just begun leaves it there")
			w.after(testInterval)
			w.answer(5_000, 15_000)
			writes := w.reconcile()
			require.Len(t, w.written, 2)
			require.Greater(t, w.written[1], int64(1), "not one and then more")
			if actuator == v1alpha1.ActuatorHPA {
				require.Equal(t, []string{"patch status", fmt.Sprint("scale ", w.written[1])}, writes,
					"the metric has to say so by then")
				w.reconcile()
				status, message = w.condition(v1alpha1.ConditionReady)
				require.Equal(t, "True/Scaling", status, "what the autoscaler said of zero is over: %s", message)
			}
			require.Equal(t, w.written[1], int64(*w.policy().Status.DesiredReplicas))
		})
	}
}

func TestAWakeThatFailsIsTriedAgain(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(0)
	w := newTestWorld(t, function, idlePolicy(v1alpha1.ActuatorHPA), fixture.ConfigMap())
	w.reconcile()
	w.answer(500, 10_000)
	w.scaleFails = apierrors.NewServiceUnavailable("etcd is away")
	_, err := w.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: fixture.Key()})
	require.ErrorContains(t, err, "etcd is away")
	w.saysOfZero()
	w.scaleFails = nil
	require.Contains(t, w.reconcile(), "scale 1")
	require.Equal(t, int64(1), w.replicas())
}

func TestRaisingMinReplicasWakesWhatWasTakenToZero(t *testing.T) {
	function := fixture.Function()
	fixture.Spec(function)["replicas"] = int64(1)
	w := newTestWorld(t, function, idlePolicy(v1alpha1.ActuatorHPA), fixture.ConfigMap())
	w.settle(0)
	w.idles(10_000, 5)
	require.Zero(t, w.replicas())
	w.saysOfZero()
	w.reconcile()
	w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MinReplicas = new(int32(2)) })
	require.Contains(t, w.reconcile(), "scale 2")
	require.Equal(t, int64(2), w.replicas())
}

func TestZeroByHandSwitchesScalingOff(t *testing.T) {
	for _, actuator := range []v1alpha1.Actuator{v1alpha1.ActuatorHPA, v1alpha1.ActuatorDirect} {
		t.Run(string(actuator), func(t *testing.T) {
			p := fixture.Policy()
			p.Spec.Actuator = actuator
			w := newTestWorld(t, fixture.Function(), p, fixture.ConfigMap())
			w.settle(700)
			w.reconcile()
			w.byHand(0)
			w.written = nil
			for range 5 {
				w.after(testInterval)
				w.answer(5_000, 15_000)
				w.reconcile()
			}
			require.Empty(t, w.written)
			require.Zero(t, w.replicas())
			status, message := w.condition(v1alpha1.ConditionReady)
			require.Equal(t, "False/SwitchedOff", status)
			require.Contains(t, message, "set them to 1 or more")
			require.Nil(t, w.policy().Status.DesiredReplicas)

			w.byHand(1)
			w.after(testInterval)
			w.answer(700, 15_000)
			w.reconcile()
			require.Equal(t, int32(7), *w.policy().Status.DesiredReplicas, "and on again")
		})
	}
}

func TestAPauseChangesNothingAndNeitherDoesItsEnd(t *testing.T) {
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModePaused, v1alpha1.ModeRecommend} {
		t.Run(string(mode), func(t *testing.T) {
			w := newTestWorld(t, fixture.Function(), capacityPolicy(), fixture.ConfigMap())
			w.settle(0)
			published := int64(10_000)
			busy := func(polls int) { // 25/s of replicas that do 10/s each
				for range polls {
					w.after(testInterval)
					published += 25 * 15
					w.answer(0, published)
					w.reconcile()
				}
			}
			busy(10)
			before := *w.policy().Status.DesiredReplicas
			require.Equal(t, int32(3), before)
			w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = mode })
			w.reconcile()
			require.Nil(t, w.autoscaler())
			capacity := w.policy().Status.Capacity
			require.NotNil(t, capacity)
			if mode == v1alpha1.ModePaused {
				_, err := w.store.Read(backlog.NewSubscription(fixture.Cluster(), "public/default/resize", "in"), w.now)
				require.ErrorIs(t, err, backlog.ErrNotTracked, "Pulsar is asked nothing")
				w.after(time.Hour)
				require.Empty(t, w.reconcile())
			} else {
				busy(10)
			}
			w.edit(func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode = v1alpha1.ModeAuto })
			w.reconcile()
			for range 10 {
				busy(1)
				require.Equal(t, before, *w.policy().Status.DesiredReplicas)
			}
			require.NotNil(t, w.autoscaler())
			require.NotNil(t, w.policy().Status.Capacity)
			require.Equal(t, int64(3), w.replicas())
		})
	}
}
