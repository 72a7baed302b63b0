// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// APIServices register the adapter with the API server.
type APIServices struct {
	// Service and Port are those of the APIServices.
	Service types.NamespacedName
	Port    int32
	// External registers external.metrics.k8s.io too.
	External bool
	// Insecure makes the API server verify no certificate.
	Insecure bool
	// Owner is the ClusterRole that owns the APIServices and the Secret; empty for none.
	Owner string
}

// Host is the name that the API server verifies.
func (a APIServices) Host() string { return a.Service.Name + "." + a.Service.Namespace + ".svc" }

func (a APIServices) check() error {
	if a.Service.Name == "" || a.Service.Namespace == "" || a.Port <= 0 {
		return errors.New("serving: Service and Port of APIServices must be set")
	}
	return nil
}

type registrar struct {
	config APIServices
	client client.Client
	// holder is the other server of a group, as last logged.
	holder map[string]string
	// stays is why an APIService could not be deleted, as last logged.
	stays string
}

func newRegistrar(config APIServices, direct client.Client) *registrar {
	return &registrar{config: config, client: direct, holder: map[string]string{}}
}

// groups returns the API groups of the adapter, with the priority of each version: the HPA controller takes the version
// that the API server prefers.
func (r *registrar) groups() map[string]map[string]int32 {
	groups := map[string]map[string]int32{cluster.CustomMetrics: {"v1beta2": 200, "v1beta1": 100}}
	if r.config.External {
		groups[cluster.ExternalMetrics] = map[string]int32{"v1beta1": 100}
	}
	return groups
}

// publish applies the APIServices of every group that no other server has, and of another those that are still ours.
func (r *registrar) publish(ctx context.Context, logger logr.Logger, data map[string][]byte) error {
	owner, err := ownerOf(ctx, r.client, r.config.Owner)
	if err != nil {
		return err
	}
	if err := r.withdraw(ctx, logger, owner); err == nil {
		r.stays = ""
	} else if err.Error() != r.stays { // no reason to stop, which would keep the certificate from being renewed
		r.stays = err.Error()
		logger.Error(err, "withdrawing an API group that is no longer served")
	}
	for group, versions := range r.groups() {
		found, err := r.read(ctx, group, versions)
		if err != nil {
			return err
		}
		holder := r.foreign(found)
		if holder != r.holder[group] && holder != "" {
			logger.Info("another server has this API group, adding no APIService and preferring none of those that remain",
				"group", group, "server", holder)
		}
		r.holder[group] = holder
		for version, priority := range versions {
			name := version + "." + group
			if holder != "" && (found[name] == nil || cluster.HolderOf(found[name], r.config.Service) != "") {
				continue // what is still ours has to be verified by the current bundle
			}
			if holder != "" {
				priority = 1 // the API server prefers the version of the other server
			}
			wanted := &apiregistrationv1.APIService{
				TypeMeta:   metav1.TypeMeta{APIVersion: apiregistrationv1.SchemeGroupVersion.String(), Kind: "APIService"},
				ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owner},
				Spec:       r.spec(group, version, priority, data[keyAuthorities]),
			}
			if err := r.register(ctx, found[name], wanted); err != nil {
				return err
			}
		}
	}
	return nil
}

// withdraw deletes the APIService of a group that is no longer served, if it is still ours and the adapter wrote it.
func (r *registrar) withdraw(ctx context.Context, logger logr.Logger, owner []metav1.OwnerReference) error {
	if r.config.External || len(owner) == 0 {
		return nil
	}
	name := "v1beta1." + cluster.ExternalMetrics
	found, err := r.read(ctx, cluster.ExternalMetrics, map[string]int32{"v1beta1": 0})
	if err != nil {
		return err
	}
	service := found[name]
	if service == nil || cluster.HolderOf(service, r.config.Service) != "" || !owned(service, owner) {
		return nil
	}
	// One that another server takes over keeps its UID.
	asRead := client.Preconditions{UID: new(service.GetUID()), ResourceVersion: new(service.GetResourceVersion())}
	switch err := r.client.Delete(ctx, service, asRead); {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // another server takes it
	case err != nil:
		return fmt.Errorf("deleting APIService %s, without which namespaces can be deleted again: %w; "+
			"deploy/rbac/certificate.yaml has the right", name, err)
	}
	logger.Info("deleted the APIService of a group that is no longer served", "apiService", name)
	return nil
}

func (r *registrar) read(ctx context.Context, group string, versions map[string]int32) (
	map[string]*apiregistrationv1.APIService, error,
) {
	found := map[string]*apiregistrationv1.APIService{}
	for version := range versions {
		name, service := version+"."+group, &apiregistrationv1.APIService{}
		err := r.client.Get(ctx, client.ObjectKey{Name: name}, service)
		switch {
		case err == nil:
			found[name] = service
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("reading APIService %s: %w", name, err)
		}
	}
	return found, nil
}

// foreign names the first other server that one of the APIServices belongs to; "" when all name the adapter's Service.
func (r *registrar) foreign(found map[string]*apiregistrationv1.APIService) (holder string) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		holder = cmp.Or(holder, cluster.HolderOf(found[name], r.config.Service))
	}
	return holder
}

// spec has no bundle if the API server verifies no certificate.
func (r *registrar) spec(group, version string, priority int32, bundle []byte) apiregistrationv1.APIServiceSpec {
	return apiregistrationv1.APIServiceSpec{
		Group: group, Version: version, GroupPriorityMinimum: 100, VersionPriority: priority,
		Service: &apiregistrationv1.ServiceReference{
			Namespace: r.config.Service.Namespace, Name: r.config.Service.Name, Port: &r.config.Port,
		},
		InsecureSkipTLSVerify: r.config.Insecure, CABundle: bundle,
	}
}

// register writes an APIService if it differs.
func (r *registrar) register(ctx context.Context, found, wanted *apiregistrationv1.APIService) error {
	if found != nil && reflect.DeepEqual(found.Spec, wanted.Spec) &&
		reflect.DeepEqual(found.OwnerReferences, wanted.OwnerReferences) {
		return nil
	}
	if _, err := cluster.Apply(ctx, r.client, wanted, client.ForceOwnership); err != nil {
		return fmt.Errorf("writing APIService %s: %w; the adapter needs deploy/rbac/certificate.yaml", wanted.Name, err)
	}
	return nil
}
