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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/polling"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider"
)

// adapter is the program's parts, wired and not started.
type adapter struct {
	manager ctrl.Manager
	polling *polling.Polling
	server  *server
	// synced turns true when every informer has listed what there is.
	synced atomic.Bool
}

// newAdapter wires the parts: poller -> store <- controllers and provider <- server.
func newAdapter(ctx context.Context, o *Options) (*adapter, error) {
	registry := prometheus.NewRegistry()
	store, err := backlog.NewStore(o.Polling.RateWindow, o.Polling.StaleAfter)
	if err != nil {
		return nil, err
	}
	a := &adapter{}
	lease, err := o.Kube.LeaseKey()
	if err != nil {
		return nil, err
	}
	if a.manager, err = newManager(o, lease); err != nil {
		return nil, err
	}
	p, worker := o.Polling, &worker{}
	parts, err := controllers.Setup(ctx, a.manager, controllers.Config{
		Store: store, PollInterval: p.PollInterval, DefaultAdminURL: p.PulsarAdminURL,
		FunctionCredentials: target.FunctionCredentials(p.FunctionCredentials), OwnCredentials: p.OwnCredentials(),
		WorkerCredentials: target.WorkerCredentials(p.WorkerCredentials),
		InstanceMetrics: target.InstanceMetrics(
			p.InstanceMetrics), Worker: worker, WorkerUpdateInterval: o.WorkerUpdateInterval,
		Lease: lease, Service: o.ServiceKey(lease.Namespace), ExternalMetrics: o.ExternalMetrics, Scaler: o.Scaler,
		Clock: time.Now, Registerer: registry,
	})
	if err != nil {
		return nil, err
	}
	measuring := polling.Config{
		Options: o.Polling, Store: store, Credentials: parts.Credentials, Updated: parts.Poked, Registerer: registry,
	}
	if parts.Pods != nil {
		measuring.Pods = parts.Pods
	}
	if a.polling, err = polling.New(measuring); err != nil {
		return nil, err
	}
	worker.Worker = a.polling.Worker
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

// worker is for the controllers, which are made before there is one: it needs their credentials. It is set before
// anything runs.
type worker struct{ *pulsar.Worker }

// newManager makes controller-runtime's manager: caches on every replica, the reconciler on the Lease's holder. Its
// own metrics and probe servers stay off, for the metrics API server has both.
func newManager(o *Options, lease types.NamespacedName) (ctrl.Manager, error) {
	config, err := o.Kube.RESTConfig()
	if err != nil {
		return nil, err
	}
	scheme, err := informer.Scheme()
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: informer.CacheOptions(lease), Client: controllers.ClientOptions(),
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
	group.Go(func() error { return a.polling.Poller.Run(running) })
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
	a.polling.Source.Close()
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
		healthz.NamedCheck("poll-loop", func(*http.Request) error { return a.polling.Poller.Alive(time.Now()) }),
	}
}

// signals lets the provider ask the controllers, which must not know each other.
type signals struct{ *informer.Signals }

// Read implements provider.Signals.
func (s signals) Read(object provider.Object, detail backlog.Detail, now time.Time) (backlog.Reading, error) {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	return s.Signals.Read(object.GroupResource, key, detail, now)
}
