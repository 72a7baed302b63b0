// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestScalingWorkers scales threads of the function worker in the stage's broker. Kubernetes has only the policies.
func TestScalingWorkers(t *testing.T) {
	onStage(t)
	t.Parallel()
	w := newWorkerBroker(t, scene.Broker)
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w *workerBroker)
	}{
		{"a function follows its backlog up and down", aWorkersFunctionFollows},
		{"a sink is brought within its bounds", aWorkersSinkIsBroughtWithinBounds},
		{"a stopped function is left alone until it is started", aStoppedFunctionIsLeftAlone},
		{"what is not there, and what is in Kubernetes", workersTargetsThatAreNone},
	} {
		// One after another: while the worker restarts one function it does not report on the others.
		t.Run(c.name, func(t *testing.T) { c.run(t, w) })
	}
}

func aWorkersFunctionFollows(t *testing.T, w *workerBroker) {
	const name, messages = "followed", 400
	require.NoError(t, w.CreateTopic(t.Context(), name+"-in", 0))
	config := w.function(name, name+"-in")
	config["parallelism"] = 1
	config["userConfig"].(map[string]any)["serviceMicros"] = "50000"
	w.createForNow(t, function.KindFunction, config)
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 1)
	p := workerPolicy(name, v1alpha1.WorkloadFunction)
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: w.AdminURL()}
	require.Equal(t, 1, w.describe(t, function.KindFunction, name).Parallelism)

	// They are there before the policy, which otherwise may decide on the first ones and then waits for four times a
	// start. One instance takes 20 s for them, and a busy worker needs more until there are three.
	w.publish(t, name+"-in", messages)
	create(t, p)
	scene.Await(t, "three instances", func(ctx context.Context) (bool, string, error) {
		topic := backlog.Topic{Cluster: w.cluster, Name: broker.TopicName(name + "-in")}
		sample, err := w.source.Fetch(ctx, topic, backlog.Request{})
		if err == nil && sample.Partitions[0].Subscriptions[0].BacklogEntries < messages/2 {
			w.publish(t, name+"-in", messages/2)
		}
		found, err := w.worker.Describe(ctx, w.component(function.KindFunction, name))
		return err == nil && found.Parallelism == 3, fmt.Sprint(found.Parallelism, err), nil
	})
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 3)
	found := readPolicy(t, name)
	require.Equal(t, v1alpha1.ActuatorDirect, found.Status.Actuator.Type)
	restarts := meta.FindStatusCondition(found.Status.Conditions, v1alpha1.ConditionScalesWithoutRestart)
	require.NotNil(t, restarts)
	require.Equal(t, "WorkerRestartsAll", restarts.Reason)

	// Between two changes that restart all instances, four times a start must pass.
	w.awaitParallelism(t, function.KindFunction, name, 1)
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 1)
	scene.AwaitConditions(t, name, "Ready=True/Scaling")
	w.benchOfWorker(t, "function:public/default/"+name, broker.TopicName(name+"-in"))
}

// aWorkersSinkIsBroughtWithinBounds has no load: the controller raises the replicas to minReplicas.
func aWorkersSinkIsBroughtWithinBounds(t *testing.T, w *workerBroker) {
	const name = "poured"
	require.NoError(t, w.CreateTopic(t.Context(), name+"-in", 0))
	w.createForNow(t, function.KindSink, map[string]any{
		"tenant": "public", "namespace": "default", "name": name, "className": replica.SinkClass, "inputs": []string{name +
			"-in"},
		"parallelism": 1,
	})
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 1)
	p := workerPolicy(name, v1alpha1.WorkloadSink)
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: w.AdminURL()}
	p.Spec.MinReplicas = new(int32(2))
	create(t, p)

	w.awaitParallelism(t, function.KindSink, name, 2)
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 2)
	scene.AwaitConditions(t, name, "Ready=True/Scaling")
	found := readPolicy(t, name)
	require.Equal(t, v1alpha1.ActuatorDirect, found.Status.Actuator.Type)
}

func aStoppedFunctionIsLeftAlone(t *testing.T, w *workerBroker) {
	const name = "halted"
	require.NoError(t, w.CreateTopic(t.Context(), name+"-in", 0))
	config := w.function(name, name+"-in")
	config["parallelism"] = 1
	w.createForNow(t, function.KindFunction, config)
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 1)
	w.demand(t, http.MethodPost, "/admin/v3/functions/public/default/"+name+"/stop")
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 0)
	p := workerPolicy(name, v1alpha1.WorkloadFunction)
	p.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: w.AdminURL()}
	p.Spec.MinReplicas = new(int32(2)) // would cause a write
	create(t, p)

	message := scene.AwaitConditions(t, name, "TargetFound=False/Stopped")
	require.Contains(t, message, "start it first")
	require.Equal(t, 1, w.describe(t, function.KindFunction, name).Parallelism)

	w.demand(t, http.MethodPost, "/admin/v3/functions/public/default/"+name+"/start")
	w.awaitParallelism(t, function.KindFunction, name, 2)
	w.consumed(t, broker.TopicName(name+"-in"), "public/default/"+name, 2)
}

func workersTargetsThatAreNone(t *testing.T, w *workerBroker) {
	missing := workerPolicy("undeployed", v1alpha1.WorkloadSource)
	missing.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: w.AdminURL()}
	create(t, missing)
	message := scene.AwaitConditions(t, "undeployed", "TargetFound=False/TargetNotFound")
	require.Contains(t, message, "source public/default/undeployed of the function worker")

	away := workerPolicy("away", v1alpha1.WorkloadFunction)
	away.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: "http://127.0.0.1:1"}
	create(t, away)
	scene.AwaitMessage(t, "away", "TargetFound=False/PulsarUnreachable", "connection refused")

	labels := map[string]string{"test": "in-kubernetes"}
	create(t, &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: "pf-public-default-in-kubernetes"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "pulsarfunction", Image: "none"}}},
			},
		},
	})
	inside := workerPolicy("in-kubernetes", v1alpha1.WorkloadFunction)
	inside.Spec.Pulsar = &v1alpha1.PulsarConnection{AdminURL: w.AdminURL()}
	create(t, inside)
	message = scene.AwaitConditions(t, "in-kubernetes", "TargetFound=False/TargetInvalid")
	require.Contains(t, message, "kind StatefulSet, name pf-public-default-in-kubernetes")
}

// workerPolicy needs one instance for each 40 messages of backlog, from 1 to 3.
func workerPolicy(name string, kind v1alpha1.WorkloadKind) *v1alpha1.AutoscalingPolicy {
	p := newPolicy(name)
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
	p.Spec.PulsarFunctionRef = v1alpha1.PulsarFunctionRef{Kind: kind, Name: name}
	p.Spec.MaxReplicas = 3
	p.Spec.Strategies = []v1alpha1.Strategy{{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: 40},
	}}
	return p
}

// createForNow creates a component and deletes it after the test. Its topic stays until the stage ends: its deletion
// while the worker deletes the subscription took half a minute.
func (w *workerBroker) createForNow(t *testing.T, kind function.Kind, config map[string]any) {
	t.Helper()
	name := fmt.Sprint(config["name"])
	w.create(t, kind, config)
	t.Cleanup(func() {
		_, err := w.Demand(context.WithoutCancel(t.Context()), http.MethodDelete,
			fmt.Sprintf("/admin/v3/%ss/public/default/%s", kind, name), nil)
		require.NoError(t, err)
	})
}

// awaitParallelism waits until the worker's configuration has that many instances.
func (w *workerBroker) awaitParallelism(t *testing.T, kind function.Kind, name string, parallelism int) {
	t.Helper()
	last := ""
	scene.Await(t, fmt.Sprintf("parallelism %d", parallelism), func(ctx context.Context) (bool, string, error) {
		config, err := w.worker.Describe(ctx, w.component(kind, name))
		p := readPolicy(t, name)
		seen := fmt.Sprintf("%v %d", err, config.Parallelism)
		if d := p.Status.Decision; d != nil {
			if now := fmt.Sprint(config.Parallelism, d.Equation, d.Hold); now != last {
				t.Log(now)
				last = now
			}
		}
		return err == nil && config.Parallelism == parallelism, seen, nil
	})
}

func readPolicy(t *testing.T, name string) *v1alpha1.AutoscalingPolicy {
	t.Helper()
	p, err := scene.Policy(t.Context(), name)
	require.NoError(t, err)
	return p
}
