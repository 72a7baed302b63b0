// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const availablePoll = 100 * time.Millisecond

// MetricsAPI is a metrics API server that runs on this machine.
type MetricsAPI struct {
	// Namespace and Service name the Service of the server; a missing namespace is created.
	Namespace, Service string
	// Port is where the server listens on 127.0.0.1.
	Port int
	// Versions are the versions that the server serves; empty is CustomMetrics().
	Versions []schema.GroupVersion
}

// CustomMetrics are the versions of custom.metrics.k8s.io.
func CustomMetrics() []schema.GroupVersion {
	const group = "custom.metrics.k8s.io"
	return []schema.GroupVersion{{Group: group, Version: "v1beta1"}, {Group: group, Version: "v1beta2"}}
}

// ExternalMetrics is the version of external.metrics.k8s.io.
func ExternalMetrics() []schema.GroupVersion {
	return []schema.GroupVersion{{Group: "external.metrics.k8s.io", Version: "v1beta1"}}
}

// RegisterMetricsAPI registers the metrics API at the aggregator: a certificate authority and a serving certificate,
// which the server must use, a Service of type ExternalName, and an APIService per version that trusts only that
// authority. The aggregator then dials localhost and verifies the name <service>.<namespace>.svc (kube-aggregator's
// remote_available_controller.go and handler_proxy.go). ca.crt beside the files is the authority's certificate. A
// second call replaces authority and port.
func (c *Cluster) RegisterMetricsAPI(ctx context.Context, api MetricsAPI) (certFile, keyFile string, err error) {
	if len(api.Versions) == 0 {
		api.Versions = CustomMetrics()
	}
	authority, err := c.NewAuthority("metrics-api-" + api.Namespace + "-" + api.Service)
	if err != nil {
		return "", "", err
	}
	if certFile, keyFile, err = authority.Issue("tls", api.Service+"."+api.Namespace+".svc"); err != nil {
		return "", "", err
	}
	if err := c.Apply(ctx, api.objects([]byte(authority.authority.PEM()))...); err != nil {
		return "", "", fmt.Errorf("registering the metrics API: %w", err)
	}
	return certFile, keyFile, nil
}

func (m MetricsAPI) objects(caBundle []byte) []*unstructured.Unstructured {
	objects := []*unstructured.Unstructured{
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": m.Namespace},
		}},
		{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": m.Service, "namespace": m.Namespace},
			"spec": map[string]any{"type": "ExternalName", "externalName": "localhost"},
		}},
	}
	for _, version := range m.Versions {
		priority := int64(100)
		if version.Version == "v1beta2" {
			priority = 200 // the HPA controller takes the version that the server prefers
		}
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiregistrationv1.SchemeGroupVersion.String(), "kind": "APIService",
			"metadata": map[string]any{"name": apiServiceName(version)},
			"spec": map[string]any{
				"group": version.Group, "version": version.Version,
				"groupPriorityMinimum": int64(100), "versionPriority": priority,
				"service":  map[string]any{"namespace": m.Namespace, "name": m.Service, "port": int64(m.Port)},
				"caBundle": base64.StdEncoding.EncodeToString(caBundle),
			},
		}})
	}
	return objects
}

func apiServiceName(version schema.GroupVersion) string { return version.Version + "." + version.Group }

// WaitMetricsAPI returns once the aggregator reports CustomMetrics as available: it reaches the server and accepts its
// certificate.
func (c *Cluster) WaitMetricsAPI(ctx context.Context) error {
	var errs []error
	for _, version := range CustomMetrics() {
		name := apiServiceName(version)
		errs = append(errs,
			WaitFor(ctx, "APIService "+name+" to be available", availablePoll, func(ctx context.Context) (bool, string, error) {
				var service apiregistrationv1.APIService
				err := c.Client.Get(ctx, client.ObjectKey{Name: name}, &service)
				return helper.IsAPIServiceConditionTrue(&service, apiregistrationv1.Available),
					fmt.Sprintf("conditions %v", service.Status.Conditions), err
			}))
	}
	return errors.Join(errs...)
}
