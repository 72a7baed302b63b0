// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/server/healthz"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider"
)

// adapter is the program's parts, wired and not started.
type adapter struct {
	manager ctrl.Manager
	poller  *backlog.Poller
	source  *pulsar.Source
	worker  worker
	server  *server
	// synced turns true when every informer has listed what there is.
	synced atomic.Bool
}

// newAdapter wires the parts: poller -> store <- controllers and provider <- server.
func newAdapter(ctx context.Context, o *Options) (*adapter, error) {
	registry := prometheus.NewRegistry()
	store, err := backlog.NewStore(o.RateWindow, o.StaleAfter)
	if err != nil {
		return nil, err
	}
	a := &adapter{}
	lease, err := leaseKey(o)
	if err != nil {
		return nil, err
	}
	if a.manager, err = newManager(o, lease); err != nil {
		return nil, err
	}
	parts, err := controllers.Setup(ctx, a.manager, controllers.Config{
		Store: store, PollInterval: o.PollInterval, DefaultAdminURL: o.PulsarAdminURL,
		FunctionCredentials: controllers.FunctionCredentials(o.FunctionCredentials), OwnCredentials: o.OwnCredentials(),
		WorkerCredentials: controllers.WorkerCredentials(o.WorkerCredentials),
		InstanceMetrics:   controllers.InstanceMetrics(o.InstanceMetrics), Worker: &a.worker, WorkerUpdateInterval: o.WorkerUpdateInterval,
		Lease: lease, Service: o.ServiceKey(lease.Namespace), ExternalMetrics: o.ExternalMetrics,
		Clock: time.Now, Registerer: registry,
	})
	if err != nil {
		return nil, err
	}
	if err := a.addPolling(o, store, parts, registry); err != nil {
		return nil, err
	}
	metrics, err := provider.New(provider.Config{
		Policies: parts.Policies, Signals: signals{parts.Signals}, DecisionMaker: parts.DecisionMaker, Lister: parts.Objects,
		Now: time.Now, Registerer: registry,
	})
	if err != nil {
		return nil, err
	}
	serving := serverConfig{Options: o, Metrics: metrics, Registry: registry, Ready: a.readyChecks(), Live: a.liveChecks()}
	if o.ExternalMetrics {
		serving.External = metrics.External()
	}
	a.server, err = newServer(serving)
	return a, err
}

func leaseKey(o *Options) (types.NamespacedName, error) {
	namespace, err := o.LeaseNamespaceOr(serviceAccountDir)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: namespace, Name: o.LeaseName}, nil
}

// newManager makes controller-runtime's manager: caches on every replica, the reconciler on the Lease's holder. Its
// own metrics and probe servers stay off, for the metrics API server has both.
func newManager(o *Options, lease types.NamespacedName) (ctrl.Manager, error) {
	config, err := o.restConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: controllers.CacheOptions(lease), Client: controllers.ClientOptions(),
		LeaderElection: true, LeaderElectionID: lease.Name, LeaderElectionNamespace: lease.Namespace,
		LeaseDuration: &o.LeaseDuration, RenewDeadline: &o.LeaseRenewDeadline, RetryPeriod: &o.LeaseRetryPeriod,
		LeaderElectionReleaseOnCancel: true,
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress:        "0",
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return manager, nil
}

// Run runs all parts until the context ends or one of them cannot go on; a lost Lease is such an end. What answers rest
// on outlives the server: requests still come for --shutdown-delay, and one that was answered from a cache that had
// stopped would take back a decision that another replica has made meanwhile.
func (a *adapter) Run(ctx context.Context) error {
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, running := errgroup.WithContext(lifetime)
	serving, stopServing := context.WithCancel(running)
	defer stopServing()
	defer context.AfterFunc(ctx, stopServing)()
	group.Go(func() error { return a.poller.Run(running) })
	group.Go(func() error {
		if err := a.manager.Start(running); err != nil {
			return fmt.Errorf("running the controllers: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		a.synced.Store(a.manager.GetCache().WaitForCacheSync(running))
		return nil
	})
	group.Go(func() error {
		defer end()
		return a.server.Run(serving)
	})
	err := group.Wait()
	a.source.Close()
	return err
}

// readyChecks let requests in when this replica can answer them: it knows the policies and polls.
func (a *adapter) readyChecks() []healthz.HealthChecker {
	return []healthz.HealthChecker{
		healthz.NamedCheck("informers-synced", func(*http.Request) error {
			if !a.synced.Load() {
				return errors.New("policies and autoscalers are not listed yet")
			}
			return nil
		}),
	}
}

// liveChecks ask for a restart when the poll loop is stuck.
func (a *adapter) liveChecks() []healthz.HealthChecker {
	return []healthz.HealthChecker{
		healthz.NamedCheck("poll-loop", func(*http.Request) error { return a.poller.Alive(time.Now()) }),
	}
}

// signals lets the provider ask the controllers, which must not know each other.
type signals struct{ *controllers.Signals }

// Read implements provider.Signals.
func (s signals) Read(object provider.Object, detail backlog.Detail, now time.Time) (backlog.Reading, error) {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	return s.Signals.Read(object.GroupResource, key, detail, now)
}
