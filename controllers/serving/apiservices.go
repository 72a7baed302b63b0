// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"encoding/base64"
	"fmt"
	"reflect"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// groups are what the adapter serves, with the priority of each version: the autoscaler takes the one that the API
// server prefers.
func (k *keeper) groups() map[string]map[string]int64 {
	groups := map[string]map[string]int64{"custom.metrics.k8s.io": {"v1beta2": 200, "v1beta1": 100}}
	if k.config.External {
		groups["external.metrics.k8s.io"] = map[string]int64{"v1beta1": 100}
	}
	return groups
}

func newAPIService(name string) *unstructured.Unstructured {
	service := &unstructured.Unstructured{}
	service.SetAPIVersion("apiregistration.k8s.io/v1")
	service.SetKind("APIService")
	service.SetName(name)
	return service
}

// registerAll applies the APIServices of every group that has no other server.
func (k *keeper) registerAll(ctx context.Context, logger logr.Logger, bundle []byte) error {
	owner, err := k.owner(ctx)
	if err != nil {
		return err
	}
	for group, versions := range k.groups() {
		found, err := k.read(ctx, group, versions)
		if err != nil {
			return err
		}
		holder := k.foreign(found)
		if holder != k.holder[group] && holder != "" {
			logger.Info("another server has this API group, so no APIService is written", "group", group, "server", holder)
		}
		if k.holder[group] = holder; holder != "" {
			continue
		}
		for version, priority := range versions {
			name := version + "." + group
			wanted := newAPIService(name)
			wanted.SetOwnerReferences(owner)
			wanted.Object["spec"] = k.spec(schema.GroupVersion{Group: group, Version: version}, priority, bundle)
			if err := k.register(ctx, found[name], wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

// read returns the group's APIServices by name.
func (k *keeper) read(ctx context.Context, group string, versions map[string]int64) (
	map[string]*unstructured.Unstructured, error,
) {
	found := map[string]*unstructured.Unstructured{}
	for version := range versions {
		service := newAPIService("")
		name := version + "." + group
		err := k.client.Get(ctx, client.ObjectKey{Name: name}, service)
		switch {
		case err == nil:
			found[name] = service
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading APIService %s: %w", name, err)
		}
	}
	return found, nil
}

// foreign names the server that one of the APIServices belongs to, "" when that is the adapter's Service.
func (k *keeper) foreign(found map[string]*unstructured.Unstructured) string {
	for name, service := range found {
		// An APIService without a Service is the API server's own.
		namespace, _, _ := unstructured.NestedString(service.Object, "spec", "service", "namespace")
		serviceName, _, _ := unstructured.NestedString(service.Object, "spec", "service", "name")
		if namespace != k.config.Service.Namespace || serviceName != k.config.Service.Name {
			return fmt.Sprintf("%s: Service %s/%s", name, namespace, serviceName)
		}
	}
	return ""
}

func (k *keeper) spec(version schema.GroupVersion, priority int64, bundle []byte) map[string]any {
	return map[string]any{
		"group": version.Group, "version": version.Version,
		"groupPriorityMinimum": int64(100), "versionPriority": priority,
		"service": map[string]any{
			"namespace": k.config.Service.Namespace, "name": k.config.Service.Name, "port": int64(k.config.Port),
		},
		"caBundle": base64.StdEncoding.EncodeToString(bundle),
	}
}

// register writes an APIService unless it is as wanted.
func (k *keeper) register(ctx context.Context, found, wanted *unstructured.Unstructured) error {
	if found != nil && reflect.DeepEqual(found.Object["spec"], wanted.Object["spec"]) &&
		reflect.DeepEqual(found.GetOwnerReferences(), wanted.GetOwnerReferences()) {
		return nil
	}
	err := k.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner(plan.FieldManager),
		client.ForceOwnership)
	if err != nil {
		return fmt.Errorf("writing APIService %s: %w; the adapter needs deploy/rbac/certificate.yaml", wanted.GetName(), err)
	}
	return nil
}
