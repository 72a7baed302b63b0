// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientdiscovery "k8s.io/client-go/discovery"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// Config is how both programs read Kubernetes; all fields but InstanceMetrics and Namespaces are required.
type Config struct {
	Store *backlog.Store
	// PollInterval of the adapter, as far as this process knows it: the age limit of decisions depends on it.
	PollInterval time.Duration
	// Targets has what flags say, and the Worker. The manager has the rest.
	Targets target.Config
	// InstanceMetrics has the pods of instances watched, to scrape their own counters.
	InstanceMetrics bool
	// Namespaces are those that the manager's cache has; none for all.
	Namespaces []string
	// Lease names the Lease; its holder decides for all policies.
	Lease types.NamespacedName
	// Clock returns the time, such as time.Now.
	Clock func() time.Time
}

// Informers reads Kubernetes from the cache.
type Informers struct {
	Signals       *Signals
	Policies      *Policies
	DecisionMaker *DecisionMaker
	// ScaledObjects are for KEDA; nil without Setup.
	ScaledObjects *ScaledObjects
	Targets       *target.Targets
	// Pods to scrape; nil without InstanceMetrics.
	Pods *Pods

	discovery cluster.Discovery
}

// readKinds are the kinds that Setup caches, if they are installed and may be read. All are optional: a reader of a
// missing one reports it.
func readKinds() []string {
	return append(
		cluster.MeasuredKinds(),
		cluster.KindFunctionMesh,
		cluster.KindScaledObject,
		cluster.KindAutoscaler,
		cluster.KindPolicy,
		cluster.KindLease,
	)
}

// Setup adds the readers of Kubernetes to a manager with Scheme and CacheOptions: no reconciler, no writes, no events.
// Nothing runs, and no request is sent, before the manager starts. changed is called for every policy that was created,
// changed or deleted, once the cache has the change; it must not block.
func Setup(ctx context.Context, mgr manager.Manager, config Config, changed func(policy types.NamespacedName)) (
	*Informers, error,
) {
	discovery, err := cluster.NewDiscovery(cluster.DiscoveryConfig{
		Mapper: mgr.GetRESTMapper(), Cache: mgr.GetCache(), Kinds: readKinds(), Index: readIndexOf, Optional: true,
	})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	r, err := New(mgr, discovery, config)
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	r.DecisionMaker = NewDecisionMaker(config, nil)
	discovery.OnSynced(cluster.KindLease, func() error { return r.DecisionMaker.Follow(ctx, mgr.GetCache()) })
	discovery.OnSynced(cluster.KindPolicy, func() error { return notifyOfPolicies(ctx, mgr.GetCache(), changed) })
	if err := discovery.AddTo(mgr); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	err = r.Serve(mgr, config, &Policies{
		reader: mgr.GetCache(), unread: func() error { return unread(discovery, cluster.KindPolicy) },
	})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	r.ScaledObjects = &ScaledObjects{
		reader: r.Targets.Reader, unread: func() error { return unread(discovery, cluster.KindScaledObject) },
	}
	return r, nil
}

// New adds the readers of targets and pods to a manager. Signals and policies follow with Serve.
func New(mgr manager.Manager, discovery cluster.Discovery, config Config) (*Informers, error) {
	if config.Store == nil || config.Targets.Worker == nil || config.Clock == nil || config.PollInterval <= 0 ||
		config.Lease.Name == "" || config.Lease.Namespace == "" {
		return nil, errors.New("store, worker, clock, poll interval and the Lease's namespace and name must be set")
	}
	r := &Informers{discovery: discovery}
	if err := r.findTargets(mgr, config); err != nil {
		return nil, err
	}
	if !config.InstanceMetrics {
		return r, nil
	}
	var err error
	if r.Pods, err = NewPods(mgr, config.Namespaces); err != nil {
		return nil, err
	}
	if err := mgr.Add(r.Pods); err != nil {
		return nil, fmt.Errorf("adding the watch of pods: %w", err)
	}
	return r, nil
}

// Serve adds the signals of policies and of what they scale.
func (r *Informers) Serve(mgr manager.Manager, config Config, policies *Policies) error {
	r.Policies = policies
	r.Signals = newSignals(config, r.Targets, policies)
	return mgr.Add(r.Signals)
}

// findTargets reads and describes scale targets.
func (r *Informers) findTargets(mgr manager.Manager, config Config) (err error) {
	finding := config.Targets
	finding.Consumers, finding.Now = target.ConsumerCount(config.Store, config.Clock), config.Clock
	finding.Workloads, finding.Objects, finding.Client = mgr.GetCache(), mgr.GetAPIReader(), mgr.GetClient()
	finding.Installed = r.discovery.Installed
	finding.Resources, err = clientdiscovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("creating a client for the discovery of kinds: %w", err)
	}
	finding.Background = target.NewBackground()
	if err := mgr.Add(finding.Background); err != nil {
		return err
	}
	r.Targets, err = target.New(finding)
	return err
}

func notifyOfPolicies(ctx context.Context, informers cache.Informers, notify func(types.NamespacedName)) error {
	_, err := cluster.Follow(ctx, informers, cluster.NewObject(cluster.KindPolicy),
		func(policy types.NamespacedName, _ client.Object) { notify(policy) })
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	return nil
}

// Ready fails until each kind is in the cache or known to be absent. It waits at most a minute for a kind that the
// adapter may not read.
func (r *Informers) Ready() error {
	if pending := r.discovery.Pending(); len(pending) > 0 {
		return fmt.Errorf("%w: objects are being read: %s", backlog.ErrNoData, strings.Join(pending, ", "))
	}
	return nil
}

// readIndexOf is target.IndexOf for readKinds.
func readIndexOf(kind string) (field string, by client.IndexerFunc) {
	if kind == cluster.KindAutoscaler {
		return target.IndexScaledObject, target.IndexByScaledObject
	}
	return target.IndexOf(kind)
}

// unread is why the cache does not have the objects of a kind, with the fix if the kind is not installed; nil if it has
// them.
func unread(discovery cluster.Discovery, kind string) error {
	switch {
	case discovery.Installed(kind):
		return nil
	case !discovery.Absent(kind):
		return fmt.Errorf("%w: objects of kind %s are being read", backlog.ErrNoData, kind)
	}
	what := map[string]string{
		cluster.KindPolicy: "install the CustomResourceDefinition of pulsar-autoscaler, or set target, function, sink " +
			"or topic in place of policy",
		cluster.KindScaledObject: "install KEDA",
	}[kind]
	return fmt.Errorf("%w: kind %s of %s is not installed in this cluster: %s (noticed within %s)",
		backlog.ErrUnsupported, kind, cluster.GVK(kind).GroupVersion(), what, cluster.DiscoveryInterval)
}

// Scheme knows the kinds that this package reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, apiregistrationv1.AddToScheme, autoscalingv2.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, eventsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("building the scheme: %w", err)
		}
	}
	return scheme, nil
}

// CacheOptions cache one Lease, and of other objects in the namespaces (all without any) the fields that
// target.Transform keeps. Without managed fields an object is half as large.
func CacheOptions(lease types.NamespacedName, namespaces []string) cache.Options {
	chosen := map[string]cache.Config{}
	for _, namespace := range namespaces {
		chosen[namespace] = cache.Config{}
	}
	return cache.Options{
		DefaultTransform:  target.Transform,
		DefaultNamespaces: chosen,
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{
					lease.Namespace: {FieldSelector: fields.OneTermEqualSelector("metadata.name", lease.Name)},
				},
			},
		},
	}
}
