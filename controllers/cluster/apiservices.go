// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metricsGroup is an API group of metrics, with the versions that HorizontalPodAutoscalers know.
type metricsGroup struct {
	name     string
	versions []string
}

func customMetricsGroup() metricsGroup {
	return metricsGroup{name: "custom.metrics.k8s.io", versions: []string{"v1beta2", "v1beta1"}}
}

func externalMetricsGroup() metricsGroup {
	return metricsGroup{name: "external.metrics.k8s.io", versions: []string{"v1beta1"}}
}

// server is the server of a metrics group; unknown as the zero value.
type server struct {
	known bool
	// absent reports whether there is no APIService.
	absent bool
	// holder is the other server, such as "Service monitoring/prometheus-adapter"; empty for the adapter.
	holder string
}

// String is for logs.
func (s server) String() string {
	switch {
	case !s.known:
		return "unknown"
	case s.absent:
		return "no server"
	case s.holder != "":
		return s.holder
	default:
		return "the adapter"
	}
}

// ours reports whether the adapter gets the requests; nil while unknown.
func (s server) ours() *bool {
	if !s.known {
		return nil
	}
	isOurs := !s.absent && s.holder == ""
	return &isOurs
}

// NewAPIService returns one without a spec.
func NewAPIService(name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	object.SetName(name)
	return object
}

// transformAPIService drops what is not decoded: CA bundles of kilobytes, and the status, which the aggregator updates
// at every check.
func transformAPIService(object any) (any, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	u.SetManagedFields(nil)
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "spec", "caBundle")
	return u, nil
}

// serverOf a group is the Service of the version that HorizontalPodAutoscalers request: of those that they know the one
// that the API server prefers, by versionPriority and then by age. It need not be available: while the adapter is down,
// replicas stay as they are.
//
// Source: k8s.io/metrics custom_metrics/discovery.go (chooseVersion), kube-aggregator SortedByGroupAndVersion.
func serverOf(ctx context.Context, reader client.Reader, group metricsGroup, own types.NamespacedName) (server, error) {
	found := server{known: true, absent: true}
	var most int64
	var best string
	for _, v := range group.versions {
		service := NewAPIService(v + "." + group.name)
		err := reader.Get(ctx, client.ObjectKeyFromObject(service), service)
		if client.IgnoreNotFound(err) != nil {
			return server{}, fmt.Errorf("reading APIService %s.%s: %w", v, group.name, err)
		}
		if err != nil {
			continue
		}
		priority, _, _ := unstructured.NestedInt64(service.Object, "spec", "versionPriority")
		if found.absent || priority > most || priority == most && version.CompareKubeAwareVersionStrings(v, best) > 0 {
			most, best, found.absent, found.holder = priority, v, false, HolderOf(service, own)
		}
	}
	return found, nil
}

// HolderOf names the server of an APIService; empty for our own Service.
func HolderOf(service *unstructured.Unstructured, own types.NamespacedName) string {
	namespace, _, _ := unstructured.NestedString(service.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
	switch {
	case namespace == "" && name == "":
		return "the API server itself"
	case namespace == own.Namespace && name == own.Name:
		return ""
	default:
		return "Service " + namespace + "/" + name
	}
}

var errAPIServicesForbidden = errors.New(
	"the adapter may not list APIServices, so actuator Auto assumes that the adapter serves custom.metrics.k8s.io: " +
		"grant it get, list and watch on apiservices.apiregistration.k8s.io, as its ClusterRole does, or set " +
		"spec.actuator")

// logForbiddenOnce logs a missing permission once, although the watch retries at least once a minute.
func logForbiddenOnce(logger logr.Logger) toolscache.WatchErrorHandlerWithContext {
	var logged atomic.Bool
	return func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		switch {
		case !apierrors.IsForbidden(err):
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		case !logged.Swap(true):
			logger.WithName("capabilities").Error(errAPIServicesForbidden, "the server of the metrics APIs is unknown")
		}
	}
}

var errExternalForeign = errors.New("v1beta1.external.metrics.k8s.io belongs to another server, which gets all " +
	"requests: run the adapter without --external-metrics (value adapter.externalMetrics of the chart), or point that " +
	"APIService at the adapter's Service")
