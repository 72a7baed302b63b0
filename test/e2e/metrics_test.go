// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	cmv1beta1 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta1"
	cmv1beta2 "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// ask requests a path of the API server, as kubectl get --raw does.
func ask(ctx context.Context, t *testing.T, path string) ([]byte, error) {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(scene.Cluster.RESTConfig())
	require.NoError(t, err)
	result := clientset.RESTClient().Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil { // Raw alone drops the server's message
		return nil, err
	}
	return result.Raw()
}

func TestMetricsOfAFunctionAreServedInBothVersionsToWhoeverAsks(t *testing.T) {
	t.Parallel()
	const name, metric = "asked", "pulsar_function_backlog_ready_messages"
	// One replica processes 20/s and 40/s arrive, so there is backlog.
	f := addFunction(t,
		stage.FunctionConfig{Name: name, ServiceTime: 50 * time.Millisecond, Partitions: 3, Batched: true})
	publish(t, f, load.Constant(40))
	const base = "/apis/custom.metrics.k8s.io/"
	const object = "/namespaces/" + stage.Namespace + "/functions.compute.functionmesh.io/"

	var answer []byte
	f.Await(t, "a backlog of 100 messages", func(ctx context.Context) (bool, string, error) {
		var err error
		if answer, err = ask(ctx, t, base+"v1beta2"+object+name+"/"+metric); err != nil {
			return false, "", err
		}
		var list cmv1beta2.MetricValueList
		if err := json.Unmarshal(answer, &list); err != nil {
			return false, "", err
		}
		return len(list.Items) == 1 && list.Items[0].Value.Value() >= 100, string(answer), nil
	})
	done := f.Score.Counts().Done
	var second cmv1beta2.MetricValueList
	require.NoError(t, json.Unmarshal(answer, &second))
	require.Equal(t, "Function", second.Items[0].DescribedObject.Kind)
	require.Equal(t, metric, second.Items[0].Metric.Name)
	require.LessOrEqual(t, second.Items[0].Value.Value(), f.Published()-done+100,
		"entries were taken for more messages than there are")
	require.WithinDuration(t, time.Now(), second.Items[0].Timestamp.Time, time.Minute)

	// A stalled broker makes signals unknown, so a path may have to be asked again.
	read := func(path string, into any) {
		f.Await(t, path, func(ctx context.Context) (bool, string, error) {
			answer, err := ask(ctx, t, base+path)
			if err != nil {
				return false, "", err
			}
			return true, "", json.Unmarshal(answer, into)
		})
	}
	var first cmv1beta1.MetricValueList
	read("v1beta1"+object+name+"/"+metric, &first)
	require.Len(t, first.Items, 1)
	require.Equal(t, metric, first.Items[0].MetricName)
	read("v1beta2"+object+"*/"+metric, &second) // by selector
	require.NotEmpty(t, second.Items)

	_, err := ask(t.Context(), t, base+"v1beta2"+object+"nobody/"+metric)
	require.ErrorContains(t, err, "nobody")
	_, err = ask(t.Context(), t, base+"v1beta2"+object+name+"/pulsar_function_desired_replicas")
	require.ErrorContains(t, err,
		`no metric "pulsar_function_desired_replicas" is served for functions.compute.functionmesh.io`)
}
