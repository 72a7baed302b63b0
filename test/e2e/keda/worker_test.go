// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestZeroToManyAndBackForAFunctionOfAWorker scales a Deployment by the backlog of a function in the broker's worker.
// The stopped function accumulates messages, and processes them after its start.
func TestZeroToManyAndBackForAFunctionOfAWorker(t *testing.T) {
	t.Parallel()
	onStage(t)
	const name = "worked"
	createFunction(t, name)
	workerDo(t, http.MethodPost, name+"/stop")
	addDeployment(t, name)
	o := addAsleep(t, stage.ScaledObjectConfig{
		Name:     name,
		Metadata: map[string]string{"function": name, "messagesPerReplica": fmt.Sprint(perReplica)},
		Target:   autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
	}, func() { awaitDeployment(t, name, 0, 0) })
	publishTo(t, name+"-in", burst)
	awaitDeployment(t, name, 4, 10)
	repoll(t, o, 2)
	workerDo(t, http.MethodPost, name+"/start")
	awaitDeployment(t, name, 0, 0)
}

// createFunction creates a function of one instance that takes 50 ms for each message, and waits for its subscription.
func createFunction(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, scene.Broker.CreateTopic(t.Context(), name+"-in", 0))
	require.NoError(t, scene.Broker.CreateSubscription(t.Context(), name+"-in", "public/default/"+name, broker.Earliest))
	jar, err := replica.Jar(t.Context(), scene.Broker.Dist(), os.Stderr)
	require.NoError(t, err)
	collector, err := replica.DiscardReports(t.Context())
	require.NoError(t, err)
	config := map[string]any{
		"tenant": "public", "namespace": "default", "name": name, "className": replica.FunctionClass, "runtime": "JAVA",
		"parallelism": 1, "inputs": []string{name + "-in"}, "autoAck": true,
		"userConfig": map[string]any{"collector": collector, "token": name, "serviceMicros": "50000", "failEvery": "0"},
	}
	component := broker.Component{Kind: "function", Config: config, Jar: jar}
	require.NoError(t, scene.Broker.CreateComponent(t.Context(), component))
	leaving(t, func(ctx context.Context) error {
		_, _, err := scene.Broker.Admin(ctx, http.MethodDelete, functionsPath+name, nil)
		return err
	})
}

const functionsPath = "/admin/v3/functions/public/default/"

// workerDo sends a command for a function to the worker.
func workerDo(t *testing.T, method, path string) {
	t.Helper()
	scene.Await(t, method+" "+path, func(ctx context.Context) (bool, string, error) {
		status, answer, err := scene.Broker.Admin(ctx, method, functionsPath+path, nil)
		return status/100 == 2, fmt.Sprintf("%d: %s", status, answer), err // 503 during the previous command
	})
}

// publishTo publishes that many messages to a topic that no Function of the stage has.
func publishTo(t *testing.T, topic string, messages int64) {
	t.Helper()
	publisher, err := load.New(load.Config{ServiceURL: scene.Broker.ServiceURL(), Topic: broker.TopicName(topic)})
	require.NoError(t, err)
	defer publisher.Close()
	shape := load.Burst(float64(messages), 0, 100*time.Millisecond)
	shape.Duration = shape.Burst.Within // Run ends with it
	require.NoError(t, publisher.Run(t.Context(), shape))
	require.GreaterOrEqual(t, publisher.Published(), messages)
}

// addDeployment creates a Deployment of one replica. Its pods do not run.
func addDeployment(t *testing.T, name string) {
	t.Helper()
	labels := map[string]string{"app": name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "none"}}},
			},
		},
	}
	require.NoError(t, scene.Client.Create(t.Context(), deployment))
	leaving(t, func(ctx context.Context) error { return scene.Client.Delete(ctx, deployment) })
}

// awaitDeployment waits until spec.replicas is from least to most.
func awaitDeployment(t *testing.T, name string, least, most int32) {
	t.Helper()
	scene.Await(t, fmt.Sprintf("%d to %d replicas of %s", least, most, name),
		func(ctx context.Context) (bool, string, error) {
			deployment := &appsv1.Deployment{}
			err := scene.Client.Get(ctx, client.ObjectKey{Namespace: stage.Namespace, Name: name}, deployment)
			if err != nil {
				return false, "", err
			}
			replicas := *deployment.Spec.Replicas
			return replicas >= least && replicas <= most, fmt.Sprint(replicas), nil
		})
}
