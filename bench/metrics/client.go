// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	"k8s.io/metrics/pkg/client/custom_metrics/scheme"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// question is a metric of an object.
type question struct{ resource, name, metric string }

// route is a route to the adapter.
type route struct {
	name   string
	client rest.Interface
	seen   *witness
}

// ask sends one request, and fails unless the response is the metric.
func (r route) ask(ctx context.Context, q question) error {
	list := &v1beta2.MetricValueList{}
	// client-go would repeat a request with Retry-After, which hides an error and prolongs the duration.
	err := r.client.Get().Namespace(stage.Namespace).Resource(q.resource).Name(q.name).SubResource(q.metric).
		MaxRetries(0).Do(ctx).Into(list)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", q.metric, err)
	}
	if len(list.Items) != 1 || list.Items[0].Metric.Name != q.metric || list.Items[0].DescribedObject.Name != q.name {
		return fmt.Errorf("requesting %s: the response is of another object: %+v", q.metric, list.Items)
	}
	return nil
}

// newRoutes returns the route through the aggregator and the direct one, both as the service account of the
// HorizontalPodAutoscaler controller.
func newRoutes(ctx context.Context, s *stage.Stage) ([]route, error) {
	kubeconfig, err := s.Cluster.ServiceAccountKubeconfig(ctx, "kube-system", "horizontal-pod-autoscaler")
	if err != nil {
		return nil, err
	}
	aggregated, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server: %w", err)
	}
	direct := rest.CopyConfig(aggregated)
	direct.Host, direct.TLSClientConfig = s.Adapter.URL, s.Adapter.TLS
	routes := []route{{name: "aggregator"}, {name: "direct"}}
	for i, config := range []*rest.Config{aggregated, direct} {
		routes[i].seen = &witness{}
		if routes[i].client, err = newClient(config, routes[i].seen); err != nil {
			return nil, fmt.Errorf("making the client of route %s: %w", routes[i].name, err)
		}
	}
	return routes, nil
}

// newClient returns the HorizontalPodAutoscaler controller's client for custom metrics (k8s.io/metrics,
// pkg/client/custom_metrics) with the content type of kube-controller-manager, without a rate limit.
func newClient(config *rest.Config, seen *witness) (rest.Interface, error) {
	config.APIPath = "/apis"
	config.GroupVersion = &v1beta2.SchemeGroupVersion
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.ContentType = runtime.ContentTypeProtobuf
	config.QPS = -1
	config.Wrap(seen.watch)
	return rest.RESTClientFor(config)
}

// witness records the protocol of the last response.
type witness struct{ last atomic.Pointer[manner] }

type manner struct{ protocol, contentType string }

func (w *witness) watch(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(request)
		if err == nil {
			w.last.Store(&manner{protocol: answer.Proto, contentType: answer.Header.Get("Content-Type")})
		}
		return answer, err
	})
}

// manner is that of the last response; empty before the first.
func (w *witness) manner() manner {
	if last := w.last.Load(); last != nil {
		return *last
	}
	return manner{}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
