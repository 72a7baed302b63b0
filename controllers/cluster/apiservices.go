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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metricsGroup is an API group that HorizontalPodAutoscalers ask, with the versions that they know.
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

// server is who serves a metrics group. The zero value is not known yet.
type server struct {
	known bool
	// absent says that there is no APIService.
	absent bool
	// holder is who it is instead of us, such as "Service monitoring/prometheus-adapter"; empty for us.
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

// ours says whether requests come to us; nil while that is not known.
func (s server) ours() *bool {
	if !s.known {
		return nil
	}
	isOurs := !s.absent && s.holder == ""
	return &isOurs
}

// apiService is the part of an APIService that tells who serves.
type apiService struct {
	Spec struct {
		VersionPriority int64 `json:"versionPriority"`
		Service         *struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
	} `json:"spec"`
}

// newAPIService is an empty object to read into.
func newAPIService() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
	return object
}

// transformAPIService drops what is not decoded: authorities of kilobytes, and what changes with every look of the
// aggregator.
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

// serverOf a group is the Service of the version that HorizontalPodAutoscalers ask: of those that they know the one
// that the API server prefers, by versionPriority and then by age. Whether it answers does not matter: ours that is
// down comes back, and meanwhile replicas stay as they are.
//
// Source: k8s.io/metrics custom_metrics/discovery.go (chooseVersion), kube-aggregator SortedByGroupAndVersion.
func serverOf(ctx context.Context, reader client.Reader, group metricsGroup, own types.NamespacedName) (server, error) {
	found := server{known: true, absent: true}
	var best apiService
	var bestVersion string
	for _, v := range group.versions {
		object := newAPIService()
		err := reader.Get(ctx, client.ObjectKey{Name: v + "." + group.name}, object)
		if client.IgnoreNotFound(err) != nil {
			return server{}, fmt.Errorf("reading APIService %s.%s: %w", v, group.name, err)
		}
		if err != nil {
			continue
		}
		var service apiService
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &service); err != nil {
			return server{}, fmt.Errorf("decoding APIService %s.%s: %w", v, group.name, err)
		}
		priority := service.Spec.VersionPriority
		if found.absent || priority > best.Spec.VersionPriority ||
			(priority == best.Spec.VersionPriority && version.CompareKubeAwareVersionStrings(v, bestVersion) > 0) {
			found.absent, best, bestVersion = false, service, v
		}
	}
	if !found.absent {
		found.holder = best.holder(own)
	}
	return found, nil
}

// holder names who serves; empty for our own Service.
func (s apiService) holder(own types.NamespacedName) string {
	service := s.Spec.Service
	switch {
	case service == nil:
		return "the API server itself"
	case service.Namespace == own.Namespace && service.Name == own.Name:
		return ""
	default:
		return "Service " + service.Namespace + "/" + service.Name
	}
}

var errAPIServicesForbidden = errors.New(
	"APIServices may not be seen, so actuator Auto takes custom.metrics.k8s.io for the adapter's: " +
		"grant the adapter get, list and watch on apiservices.apiregistration.k8s.io, as its ClusterRole does, or set " +
		"spec.actuator")

// logForbiddenOnce keeps a missing right, which is tried again at least once a minute, out of the log after the
// first time.
func logForbiddenOnce(logger logr.Logger) toolscache.WatchErrorHandlerWithContext {
	var said atomic.Bool
	return func(ctx context.Context, reflector *toolscache.Reflector, err error) {
		switch {
		case !apierrors.IsForbidden(err):
			toolscache.DefaultWatchErrorHandler(ctx, reflector, err)
		case !said.Swap(true):
			logger.WithName("capabilities").Error(errAPIServicesForbidden, "who serves the metrics APIs is unknown")
		}
	}
}

var errExternalForeign = errors.New("v1beta1.external.metrics.k8s.io belongs to another server, which gets all " +
	"requests: " +
	"leave --external-metrics off, or point that APIService at the adapter's Service")
