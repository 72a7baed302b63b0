// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	cmv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// create creates an object and deletes it after the test.
func create(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, scene.Client.Create(t.Context(), object))
	t.Cleanup(func() { remove(t, object) })
}

// addWithoutReplicas adds a Function, Sink or Source without replicas: the test controls its subscription.
func addWithoutReplicas(t *testing.T, kind, name string, b *broker.Broker, spec map[string]any) {
	t.Helper()
	create(t, mesh.PulsarConfig(stage.Namespace, name+"-pulsar", b.AdminURL(), b.ServiceURL()))
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(mesh.GroupVersion().WithKind(kind))
	object.SetNamespace(stage.Namespace)
	object.SetName(name)
	for field, value := range map[string]any{"className": "shop.Still", "replicas": int64(1)} {
		require.NoError(t, unstructured.SetNestedField(object.Object, value, "spec", field))
	}
	require.NoError(t, unstructured.SetNestedField(object.Object, name+"-pulsar", "spec", "pulsar", "pulsarConfig"))
	create(t, object)
	none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":0}}`)) // it cannot be created with 0
	require.NoError(t, scene.Client.Patch(t.Context(), object, none))
}

// advise adds a policy on a Function that changes nothing, with its own connection, if any.
func advise(t *testing.T, name string, connection *v1alpha1.PulsarConnection) {
	t.Helper()
	p := newPolicy(name)
	p.Spec.Mode, p.Spec.Pulsar = v1alpha1.ModeRecommend, connection
	create(t, p)
}

const readyMessages = "pulsar_function_backlog_ready_messages"

// metricPath is the path of a metric of a Function, Sink, Source or StatefulSet, or of a policy.
func metricPath(kind, name, metric string) string {
	resource := strings.ToLower(kind) + "s." + mesh.Group
	switch kind {
	case "StatefulSet":
		resource = "statefulsets.apps"
	case "AutoscalingPolicy":
		resource = "autoscalingpolicies." + v1alpha1.Group
	}
	return "/apis/custom.metrics.k8s.io/v1beta2/namespaces/" + stage.Namespace + "/" + resource + "/" + name + "/" + metric
}

// asker requests a path of the metrics API.
type asker func(ctx context.Context, path string) ([]byte, error)

// aggregated requests through the aggregator.
func aggregated(t *testing.T) asker {
	t.Helper()
	return func(ctx context.Context, path string) ([]byte, error) { return ask(ctx, t, path) }
}

func (by asker) value(ctx context.Context, kind, name, metric string) (cmv1beta2.MetricValue, error) {
	answer, err := by(ctx, metricPath(kind, name, metric))
	if err != nil {
		return cmv1beta2.MetricValue{}, err
	}
	var list cmv1beta2.MetricValueList
	if err := json.Unmarshal(answer, &list); err != nil {
		return cmv1beta2.MetricValue{}, err
	}
	if len(list.Items) != 1 {
		return cmv1beta2.MetricValue{}, fmt.Errorf("%d values: %s", len(list.Items), answer)
	}
	return list.Items[0], nil
}

// awaits waits until the object has exactly that many ready messages.
func (by asker) awaits(t *testing.T, kind, name string, messages int64) {
	t.Helper()
	scene.Await(t, fmt.Sprintf("%d ready messages of %s %s", messages, kind, name),
		func(ctx context.Context) (bool, string, error) {
			value, err := by.value(ctx, kind, name, readyMessages)
			if err != nil {
				return false, "", err
			}
			return value.Value.Value() == messages, value.Value.String(), nil
		})
}

// awaitsBacklog waits until the object has ready messages.
func (by asker) awaitsBacklog(t *testing.T, kind, name string) {
	t.Helper()
	scene.Await(t, fmt.Sprintf("a backlog of %s %s", kind, name), func(ctx context.Context) (bool, string, error) {
		value, err := by.value(ctx, kind, name, readyMessages)
		return value.Value.Value() > 0 && value.DescribedObject.Kind == kind, value.Value.String(), err
	})
}

// awaitsTimed waits until all instances of the object have told how busy they are, and for how long a call takes.
func (by asker) awaitsTimed(t *testing.T, kind, name string, call time.Duration) {
	t.Helper()
	scene.Await(t, "all instances of "+name+" to be asked", func(ctx context.Context) (bool, string, error) {
		const busy, silent, took = "pulsar_function_busy_ratio", "pulsar_function_silent_instances",
			"pulsar_function_service_time_seconds"
		seen := map[string]float64{}
		for _, metric := range []string{busy, silent, took} {
			value, err := by.value(ctx, kind, name, metric)
			if err != nil {
				return false, metric, err
			}
			seen[metric] = value.Value.AsApproximateFloat64()
		}
		return seen[busy] > 0 && seen[silent] == 0 && seen[took] >= call.Seconds(), fmt.Sprint(seen), nil
	})
}

// pulsarClient connects to a broker, with a token if there is one, until the test ends.
func pulsarClient(t *testing.T, b *broker.Broker, token string) pulsar.Client {
	t.Helper()
	connected, err := broker.Connect(b.ServiceURL(), token)
	require.NoError(t, err)
	t.Cleanup(connected.Close)
	return connected
}

// fill publishes messages of one entry each, and returns when the broker has stored them.
func fill(t *testing.T, to pulsar.Client, topic string, messages int) {
	t.Helper()
	producer, err := to.CreateProducer(pulsar.ProducerOptions{Topic: topic, DisableBatching: true})
	require.NoError(t, err)
	defer producer.Close() // it would recreate a deleted topic
	(&publisher{t: t, producer: producer, batch: 1}).send(messages)
}
