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
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/apimachinery/pkg/types"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/kube"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/poller"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

// adapter has the program's parts, wired and not started.
type adapter struct {
	manager ctrl.Manager
	fence   *kube.Fence
	pulsar  *poller.Parts
	server  *genericapiserver.GenericAPIServer
	// reconciling fails when reconciles hang.
	reconciling func(now time.Time) error
	// synced is true from when every informer has completed its first list until the caches stop.
	synced atomic.Bool
}

// newAdapter wires the parts: poller -> store <- controllers and provider <- server.
func newAdapter(ctx context.Context, o *Options, registry ctrlmetrics.RegistererGatherer) (*adapter, error) {
	store, err := backlog.NewStore(o.Poller.RateWindow, o.Poller.StaleAfter, o.Poller.Bounds)
	if err != nil {
		return nil, err
	}
	lease, err := o.Kube.LeaseKey()
	if err != nil {
		return nil, err
	}
	a := &adapter{fence: kube.NewFence(lease, o.LeaseDuration)}
	if a.manager, err = o.Kube.NewManager(ctx, lease, o.managerOptions(lease), a.fence); err != nil {
		return nil, err
	}
	a.registerMetrics(registry)
	p, worker := o.Poller, &poller.LateWorker{}
	targets := p.Targets(worker)
	targets.WorkerUpdateInterval = o.WorkerUpdateInterval
	parts, err := controllers.Setup(ctx, a.manager, controllers.Config{
		Config: informer.Config{
			Store: store, PollInterval: p.PollInterval, Targets: targets, Namespaces: o.Kube.WatchNamespaces, Lease: lease,
			Clock: time.Now, InstanceMetrics: p.InstanceMetrics == poller.PodInstanceMetrics,
		},
		Worker: fencedWorker{worker, a.fence}, Service: o.ServiceKey(lease.Namespace), ExternalMetrics: o.ExternalMetrics,
		Scaler: o.Scaler, PolicyMetrics: o.PolicyMetrics, Registerer: registry,
	})
	if err != nil {
		return nil, err
	}
	a.pulsar, err = poller.New(poller.Config{
		Options: p, Store: store, Credentials: parts.Targets.Credentials, Pods: parts.Pods, Updated: parts.Notify,
		Registerer: registry,
	})
	if err != nil {
		return nil, err
	}
	worker.Worker, a.reconciling = a.pulsar.Worker, parts.Alive
	answering := provider.New(provider.Config{
		Policies: parts.Policies, Signals: parts.Signals, DecisionMaker: cachedDecisions{parts.DecisionMaker, a.ready},
		Lister: parts.Targets.Reader, Now: time.Now, Registerer: registry,
	})
	certificate, err := setupCertificate(o, a.manager, o.ServiceKey(lease.Namespace), a.ready)
	if err != nil {
		return nil, err
	}
	config := serverConfig{
		Options: o, Metrics: answering, Registry: registry, PolicyMetrics: parts.PolicyMetrics.Families,
		Certificate: certificate, Ready: a.readyChecks(), Live: a.liveChecks(),
	}
	if o.ExternalMetrics {
		config.External = answering
	}
	a.server, err = newServer(config)
	return a, err
}

// managerOptions run caches on every replica, and reconcilers on the Lease's holder only.
func (o *Options) managerOptions(lease types.NamespacedName) ctrl.Options {
	return ctrl.Options{
		LeaderElection: true, LeaderElectionID: lease.Name, LeaderElectionNamespace: lease.Namespace,
		LeaseDuration: &o.LeaseDuration, RenewDeadline: &o.LeaseRenewDeadline, RetryPeriod: &o.LeaseRetryPeriod,
		LeaderElectionReleaseOnCancel: true,
	}
}

// Run runs all parts until the context ends or one of them fails. Losing the Lease is such a failure, as is a pause of
// the process that outlasts the Lease. The server itself continues for --shutdown-delay.
func (a *adapter) Run(ctx context.Context) error {
	defer a.pulsar.Source.Close()
	return program.Run(ctx, program.Parts{
		Serve: a.serve,
		Drain: func(context.Context) {},
		Background: []func(context.Context) error{
			a.pulsar.Poller.Run,
			func(ctx context.Context) error { return kube.Run(ctx, a.manager) },
			a.fence.Watch,
			a.watchCaches,
		},
	})
}

// watchCaches follows the caches until they stop with the context.
func (a *adapter) watchCaches(ctx context.Context) error {
	a.synced.Store(a.manager.GetCache().WaitForCacheSync(ctx))
	<-ctx.Done()
	a.synced.Store(false)
	return nil
}

// serve serves until the context ends, continues for --shutdown-delay, and returns when no request is running.
func (a *adapter) serve(ctx context.Context) error {
	if err := a.server.PrepareRun().RunWithContext(ctx); err != nil {
		return fmt.Errorf("serving the metrics API: %w", err)
	}
	return nil
}

// ready returns why this replica cannot serve; nil if it can.
func (a *adapter) ready() error {
	if !a.synced.Load() {
		return errors.New("policies and autoscalers are not listed yet, or not watched any more as this process ends")
	}
	return nil
}

func (a *adapter) readyChecks() []healthz.HealthChecker {
	return []healthz.HealthChecker{
		healthz.NamedCheck("informers-synced", func(*http.Request) error { return a.ready() }),
	}
}

// liveChecks make the kubelet restart a process that no longer polls or reconciles.
func (a *adapter) liveChecks() []healthz.HealthChecker {
	return []healthz.HealthChecker{
		healthz.NamedCheck("poll-loop", func(*http.Request) error { return a.pulsar.Poller.Alive(time.Now()) }),
		healthz.NamedCheck("reconcile-loop", func(*http.Request) error { return a.reconciling(time.Now()) }),
	}
}

// cachedDecisions are current only while the caches are. If a part of the process fails, these stop, and the server
// goes on for --shutdown-delay: it would serve older decisions than another replica has made since.
type cachedDecisions struct {
	response.DecisionMaker
	ready func() error
}

// Current implements response.DecisionMaker.
func (d cachedDecisions) Current(p *v1alpha1.AutoscalingPolicy, now time.Time) error {
	if err := d.ready(); err != nil {
		return err
	}
	return d.DecisionMaker.Current(p, now)
}

// fencedWorker changes what function workers run, only while this process leads.
type fencedWorker struct {
	*poller.LateWorker
	fence *kube.Fence
}

// SetParallelism implements controllers.WorkerChanger.
func (w fencedWorker) SetParallelism(ctx context.Context, component function.Component, instances int32) error {
	if err := w.fence.Held(); err != nil {
		return err
	}
	return w.LateWorker.SetParallelism(ctx, component, instances)
}

func (a *adapter) registerMetrics(registerer prometheus.Registerer) {
	registerer.MustRegister(program.BuildInfo())
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "pulsar_autoscaler_leader", Help: "1 on the replica that decides, which holds the Lease; 0 on the others.",
	}, func() float64 {
		if a.leads() {
			return 1
		}
		return 0
	})
}

func (a *adapter) leads() bool {
	select {
	case <-a.manager.Elected():
		return a.fence.Held() == nil
	default:
		return false
	}
}
