// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/policyset"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const controllerName = "autoscalingpolicy"

const (
	// workers is the number of concurrent reconciles. One takes well under 1 ms when nothing changes, so 4 serve 10k
	// policies every 15 s; more would only load the API server when everything changes.
	workers = 4
	// reconcileTimeout bounds a reconcile: lookups and writes.
	reconcileTimeout = 30 * time.Second
	// stuckAfter is how long running reconciles may go without one beginning or ending.
	stuckAfter = 3 * reconcileTimeout
	// reportTimeout bounds the status write after a failed reconcile.
	reportTimeout = 5 * time.Second
)

// Config configures Setup; all fields but Namespaces are required.
type Config struct {
	informer.Config

	// Worker changes what function workers run, each at most once in WorkerUpdateInterval.
	Worker WorkerChanger
	// Service of the adapter, which its APIServices name.
	Service types.NamespacedName
	// ExternalMetrics is set if the process serves external metrics.
	ExternalMetrics bool
	// Scaler is the address of our external scaler for KEDA; zero without one.
	Scaler plan.Scaler
	// PolicyMetrics selects the series of each policy.
	PolicyMetrics metrics.Level
	Registerer    prometheus.Registerer
}

// Controllers are the parts that the rest of the process uses.
type Controllers struct {
	*informer.Informers

	// Notify takes the topics of which the poller has new data.
	Notify func(backlog.Topic)
	// PolicyMetrics has the series of each policy.
	PolicyMetrics *metrics.Exporter
	// Alive fails when reconciles of policies hang.
	Alive func(now time.Time) error
}

// Setup registers indexes, watches and the reconciler with a manager that has Scheme and CacheOptions, and
// returns what the rest of the process uses. Nothing runs before the manager starts.
func Setup(ctx context.Context, mgr manager.Manager, config Config) (*Controllers, error) {
	if config.Worker == nil || config.Registerer == nil {
		return nil, errors.New("controllers: Worker and Registerer must be set")
	}
	if err := index(ctx, mgr.GetFieldIndexer()); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	discovery, err := cluster.NewDiscovery(cluster.DiscoveryConfig{
		Mapper: mgr.GetRESTMapper(), Cache: mgr.GetCache(), Kinds: cluster.CachedKinds(), Index: target.IndexOf,
	})
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	reading, err := informer.New(mgr, discovery, config.Config)
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	capabilities, err := cluster.Setup(mgr, cluster.CapabilitiesConfig{
		Namespace: config.Lease.Namespace, Own: config.Service, ExternalMetrics: config.ExternalMetrics,
		Scaler: config.Scaler, Registerer: config.Registerer,
	}, discovery.Installed)
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	reconciler := newReconciler(mgr, reconcilerConfig{
		Config: config, Targets: reading.Targets, Capabilities: capabilities.Now,
	}, reading.Pods)
	if err := watch(mgr, reconciler, discovery, capabilities); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	err = errors.Join(addPolicySets(mgr, config, reading.Targets.Reader, discovery), discovery.AddTo(mgr))
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	if err := serve(ctx, mgr, config.Config, reading, reconciler); err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return &Controllers{
		Informers: reading, Notify: reconciler.interest.notify, Alive: reconciler.progress.alive,
		PolicyMetrics: reconciler.PolicyMetrics,
	}, nil
}

// newReconciler adds the manager's parts to the configuration.
func newReconciler(mgr manager.Manager, config reconcilerConfig, pods *informer.Pods) *PolicyReconciler {
	config.Client, config.Live, config.Recorder = mgr.GetClient(), mgr.GetAPIReader(),
		mgr.GetEventRecorder(plan.FieldManager)
	if pods != nil {
		config.Pods = pods
	}
	return newPolicyReconciler(config)
}

func index(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.AutoscalingPolicy{}, target.IndexScaleTarget, target.IndexPolicy)
	if err != nil {
		return fmt.Errorf("indexing policies: %w", err)
	}
	if err := indexer.IndexField(ctx, &autoscalingv2.HorizontalPodAutoscaler{}, target.IndexScaleTarget,
		target.IndexAutoscaler); err != nil {
		return fmt.Errorf("indexing HorizontalPodAutoscalers: %w", err)
	}
	return nil
}

func watch(
	mgr manager.Manager,
	reconciler *PolicyReconciler,
	discovery cluster.Discovery,
	capabilities *cluster.Capabilities,
) error {
	c, err := builder.ControllerManagedBy(mgr).
		Named(controllerName).
		Watches(&v1alpha1.AutoscalingPolicy{}, siblings(mgr.GetCache()), builder.WithPredicates(policyChanged())).
		Watches(&autoscalingv2.HorizontalPodAutoscaler{}, autoscalerUsers(mgr.GetCache()),
			builder.WithPredicates(autoscalerChanged())).
		Watches(&coordinationv1.Lease{}, everyPolicy(mgr.GetCache()),
			builder.WithPredicates(allPausedChanged(reconciler.config.Lease))).
		WatchesRawSource(notifications(reconciler.interest, discovery)).
		WatchesRawSource(capabilityChanges(capabilities, everyPolicy(mgr.GetCache()))).
		WithOptions(cluster.ControllerOptions(workers, reconcileTimeout)).
		Build(reconciler)
	if err != nil {
		return fmt.Errorf("building the controller: %w", err)
	}
	for _, kind := range cluster.CachedKinds() {
		discovery.OnSynced(kind, func() error {
			return c.Watch(
				source.Kind(mgr.GetCache(), target.NewCached(kind), workloadUsers(mgr.GetCache()), workloadChanged()),
			)
		})
	}
	return nil
}

func addPolicySets(mgr manager.Manager, config Config, reader *target.Reader, discovery cluster.Discovery) error {
	reconciler, err := policyset.New(policyset.Config{
		Client: mgr.GetClient(), Objects: reader, Recorder: mgr.GetEventRecorder(plan.FieldManager),
		Clock: config.Clock, Registerer: config.Registerer,
	})
	if err != nil {
		return err
	}
	return reconciler.AddTo(mgr, discovery)
}

// serve adds what every replica serves from the cache.
func serve(ctx context.Context, mgr manager.Manager, config informer.Config, reading *informer.Informers,
	reconciler *PolicyReconciler,
) error {
	watched, err := cluster.Follow(ctx, mgr.GetCache(), &v1alpha1.AutoscalingPolicy{}, reconciler.memories.cached)
	if err != nil {
		return fmt.Errorf("watching policies: %w", err)
	}
	if err := reading.Serve(mgr, config, informer.NewPolicies(mgr.GetCache(), watched.HasSynced)); err != nil {
		return err
	}
	reading.DecisionMaker = informer.NewDecisionMaker(config, reconciler.memories.decidedAt)
	return reading.DecisionMaker.Follow(ctx, mgr.GetCache())
}
