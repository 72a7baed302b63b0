// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"k8s.io/metrics/pkg/client/custom_metrics/scheme"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// theShipped has the intervals that ship, for what is measured.
var theShipped = shared.New("a real broker and control plane", func(ctx context.Context) (*stage.Stage, error) {
	return stage.Open(ctx, stage.Config{AdapterFlags: stage.PatientLease(), Progress: os.Stderr})
}, closeStage)

// BenchmarkMetric is the GET of a metric: from kube-apiserver through its aggregator to the adapter, like the HPA
// controller, and directly to the adapter. Clients share the machine with the control plane, the broker and the
// adapter.
//
// A client is like a worker of that controller: it sends a request, waits for the response, and sends the next. The
// controller has 5 workers. 64 clients are below the 100 concurrent requests that an API server accepts on one HTTP/2
// connection (apiserver's secure_serving.go): more would queue in the client.
func BenchmarkMetric(b *testing.B) {
	const name = "measured"
	s := theShipped.Need(b)
	f := s.TestFunction(b, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	require.NoError(b, s.Client.Create(b.Context(), stage.NewPolicy(name, 1, 20, 30*time.Second)))
	f.Load(b, load.Constant(20)) // a fifth of what a replica processes, so that the machine has little else to do
	clients := metricClients(b, s)
	for _, route := range []string{"aggregator", "direct"} {
		for _, of := range []struct{ metric, resource string }{
			{served.MetricDesiredReplicas, v1alpha1.GroupResource().String()},
			{"pulsar_function_backlog_ready_messages", "functions." + mesh.GroupVersion().Group},
		} {
			get := func(ctx context.Context) error { return getMetric(ctx, clients[route], of.resource, name, of.metric) }
			f.Await(b, of.metric+" by route "+route, func(ctx context.Context) (bool, string, error) {
				err := get(ctx)
				return err == nil, "", err
			})
			for _, workers := range []int{1, 16, 64} {
				b.Run(fmt.Sprintf("route=%s/metric=%s/clients=%d", route, of.metric, workers), func(b *testing.B) {
					measure(b, workers, get)
				})
			}
		}
	}
}

// metricClients are clients for custom metrics by route, as the service account of the HPA controller with the content
// type of kube-controller-manager, but without its limit of 20 requests a second.
func metricClients(b *testing.B, s *stage.Stage) map[string]rest.Interface {
	b.Helper()
	kubeconfig, err := s.Cluster.ServiceAccountKubeconfig(b.Context(), "kube-system", "horizontal-pod-autoscaler")
	require.NoError(b, err)
	aggregator, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(b, err)
	direct := rest.CopyConfig(aggregator)
	direct.Host, direct.TLSClientConfig = s.Adapter.URL, s.Adapter.TLS
	clients := map[string]rest.Interface{}
	for route, config := range map[string]*rest.Config{"aggregator": aggregator, "direct": direct} {
		config.APIPath, config.GroupVersion = "/apis", &v1beta2.SchemeGroupVersion
		config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
		config.ContentType, config.QPS = runtime.ContentTypeProtobuf, -1
		clients[route], err = rest.RESTClientFor(config)
		require.NoError(b, err)
	}
	return clients
}

// getMetric fails unless the response is the metric. It does not repeat a request, which would hide an error.
func getMetric(ctx context.Context, client rest.Interface, resource, name, metric string) error {
	// The adapter responds within 250 ms, if only with an error; 60 s, after which the aggregator gives up, are too long.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	list := &v1beta2.MetricValueList{}
	err := client.Get().Namespace(stage.Namespace).Resource(resource).Name(name).SubResource(metric).
		MaxRetries(0).Do(ctx).Into(list)
	if err == nil && (len(list.Items) != 1 || list.Items[0].Metric.Name != metric) {
		err = fmt.Errorf("the response is of something else: %+v", list.Items)
	}
	return err
}

// measure sends b.N requests by some workers, each of which waits for a response before its next request.
func measure(b *testing.B, workers int, get func(context.Context) error) {
	b.Helper()
	var sent atomic.Int64
	each := make([][]time.Duration, workers)
	var group sync.WaitGroup
	b.ResetTimer()
	for i := range each {
		group.Go(func() {
			for sent.Add(1) <= int64(b.N) {
				begun := time.Now()
				if err := get(b.Context()); err != nil {
					b.Error(err)
					return
				}
				each[i] = append(each[i], time.Since(begun))
			}
		})
	}
	group.Wait()
	b.StopTimer()
	p50, p99, _ := output.Waits(slices.Sorted(slices.Values(slices.Concat(each...))), b.N)
	if p50 == nil || p99 == nil {
		return // a request failed
	}
	b.ReportMetric(*p50*1000, "p50-ms")
	b.ReportMetric(*p99*1000, "p99-ms")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "answers/s")
}
