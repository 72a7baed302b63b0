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
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The API groups of metrics.
const (
	CustomMetrics   = "custom.metrics.k8s.io"
	ExternalMetrics = "external.metrics.k8s.io"
)

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

// transformAPIService drops what is not read: CA bundles of kilobytes, and the status, which the aggregator updates at
// every check.
func transformAPIService(object any) (any, error) {
	if s, ok := object.(*apiregistrationv1.APIService); ok {
		s.ManagedFields, s.Spec.CABundle, s.Status = nil, nil, apiregistrationv1.APIServiceStatus{}
	}
	return object, nil
}

// serverOf a group is the server of its Preferred APIService.
func serverOf(ctx context.Context, reader client.Reader, group string, own types.NamespacedName) (server, error) {
	var list apiregistrationv1.APIServiceList
	if err := reader.List(ctx, &list); err != nil {
		return server{}, fmt.Errorf("listing APIServices: %w", err)
	}
	preferred := Preferred(list.Items, group)
	if preferred == nil {
		return server{known: true, absent: true}, nil
	}
	return server{known: true, holder: HolderOf(preferred, own)}, nil
}

// Preferred is the APIService of the version that HorizontalPodAutoscalers request: of those that they know the one
// that the API server prefers, by versionPriority and then by age; nil without one. It need not be available: while the
// adapter is down, replicas stay as they are.
//
// Source: k8s.io/metrics custom_metrics/discovery.go (chooseVersion).
func Preferred(services []apiregistrationv1.APIService, group string) *apiregistrationv1.APIService {
	var known []*apiregistrationv1.APIService
	for i := range services {
		of := &services[i].Spec
		if of.Group == group && (of.Version == "v1beta1" || of.Version == "v1beta2" && group == CustomMetrics) {
			known = append(known, &services[i])
		}
	}
	if len(known) == 0 {
		return nil
	}
	return helper.SortedByGroupAndVersion(known)[0][0]
}

// HolderOf names the server of an APIService; empty for our own Service.
func HolderOf(service *apiregistrationv1.APIService, own types.NamespacedName) string {
	switch at := service.Spec.Service; {
	case at == nil:
		return "the API server itself"
	case at.Namespace == own.Namespace && at.Name == own.Name:
		return ""
	default:
		return "Service " + at.Namespace + "/" + at.Name
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
