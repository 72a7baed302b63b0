// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/connections"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/registries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/polling"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// scaler is the program's parts, wired and not started, with its ports open.
type scaler struct {
	options  *Options
	logger   *slog.Logger
	manager  ctrl.Manager
	reading  *informer.Informers
	polling  *polling.Polling
	server   *keda.Server
	registry *prometheus.Registry
	// grpc is where KEDA is answered, http where metrics and probes are.
	grpc, http net.Listener
	// stopping turns true when KEDA is to ask others.
	stopping atomic.Bool
}

// newScaler wires the parts: poller -> store <- controllers <- server.
func newScaler(ctx context.Context, o *Options, logger *slog.Logger) (*scaler, error) {
	s := &scaler{options: o, logger: logger, registry: prometheus.NewRegistry()}
	lease, err := o.Kube.LeaseKey()
	if err != nil {
		return nil, err
	}
	store, err := backlog.NewStore(o.Polling.RateWindow, o.Polling.StaleAfter)
	if err != nil {
		return nil, err
	}
	if s.manager, err = newManager(o, lease); err != nil {
		return nil, err
	}
	if err := s.wire(ctx, store, lease); err != nil {
		return nil, err
	}
	return s, s.listen(ctx)
}

// wire makes what reads Kubernetes, what reads Pulsar, and what answers from both.
func (s *scaler) wire(ctx context.Context, store *backlog.Store, lease types.NamespacedName) error {
	p, worker := s.options.Polling, &worker{}
	named, err := connections.New(s.options.ConnectionsFile, s.logger, time.Now)
	if err != nil {
		return err
	}
	p.AllowedPulsarHosts = slices.Concat(p.AllowedPulsarHosts, named.Hosts())
	s.reading, err = informer.Setup(ctx, s.manager, informer.Config{
		Store: store, DefaultAdminURL: p.PulsarAdminURL,
		FunctionCredentials: target.FunctionCredentials(p.FunctionCredentials), OwnCredentials: p.OwnCredentials(),
		WorkerCredentials: target.WorkerCredentials(
			p.WorkerCredentials), InstanceMetrics: target.InstanceMetrics(p.InstanceMetrics),
		Worker: worker, Lease: lease, Clock: time.Now,
		// Nothing runs yet, so neither is called before there is a server.
		PolicyChanged: func(policy types.NamespacedName) { s.server.PolicyChanged(policy) },
	})
	if err != nil {
		return err
	}
	measuring := polling.Config{
		Options: p, Store: store, Credentials: named.Before(s.reading.Credentials), Registerer: s.registry,
		Updated: func(topic backlog.Topic) { s.server.TopicChanged(topic) },
	}
	if s.reading.Pods != nil {
		measuring.Pods = s.reading.Pods
	}
	if s.polling, err = polling.New(measuring); err != nil {
		return err
	}
	worker.Worker = s.polling.Worker
	s.server, err = keda.New(keda.Config{
		Policies: s.reading.Policies, DecisionMaker: s.reading.DecisionMaker,
		Signals:       signals{read: s.reading.Signals, places: places{own: p.PulsarAdminURL, named: named}},
		ScaledObjects: s.reading.ScaledObjects,
		Now:           time.Now, HoldFor: s.options.HoldFor,
		Logger: s.logger, Registerer: s.registry,
	})
	return err
}

// worker is for the controllers, which are made before there is one: it needs their credentials. It is set before
// anything runs.
type worker struct{ *pulsar.Worker }

// newManager makes controller-runtime's manager, which here runs caches alone.
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
		Scheme: scheme, Cache: informer.CacheOptions(lease),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	return manager, nil
}

// listen opens the ports, so that one that is taken fails at once.
func (s *scaler) listen(ctx context.Context) error {
	for _, port := range []struct {
		to            *net.Listener
		flag, address string
	}{{&s.grpc, "grpc-bind-address", s.options.GRPCBindAddress}, {
		&s.http, "metrics-bind-address",
		s.options.MetricsBindAddress,
	}} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", port.address)
		if err != nil {
			return fmt.Errorf("listening at --%s: %w", port.flag, err)
		}
		*port.to = listener
	}
	return nil
}

// Run runs all parts until the context ends or one of them cannot go on. After the end of the context KEDA is still
// answered for --shutdown-delay, while it learns that others are to be asked, and the server outlived by what its
// answers rest on.
func (s *scaler) Run(ctx context.Context) error {
	lifetime, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	group, running := errgroup.WithContext(lifetime)
	serving, stopServing := context.WithCancel(running)
	defer stopServing()
	defer context.AfterFunc(ctx, func() {
		s.stopping.Store(true)
		delay := time.NewTimer(s.options.ShutdownDelay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-running.Done():
		}
		stopServing()
	})()
	group.Go(func() error { return s.polling.Poller.Run(running) })
	group.Go(func() error {
		if err := s.manager.Start(running); err != nil {
			return fmt.Errorf("reading Kubernetes: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		all := registries.FirstWins{s.registry, ctrlmetrics.Registry}
		return serveHTTP(running, s.http, handler(all, func() error { return s.polling.Poller.Alive(time.Now()) }, s.ready))
	})
	group.Go(func() error {
		defer end()
		return keda.Serve(serving, keda.ServeConfig{
			Server: s.server, Listener: s.grpc, TLS: s.options.TLS, Ready: s.ready, MaxConnectionAge: s.options.MaxConnectionAge,
			Logger: s.logger,
		})
	})
	err := group.Wait()
	s.polling.Source.Close()
	return err
}

// ready says whether KEDA is to ask this replica.
func (s *scaler) ready() error {
	if s.stopping.Load() {
		return errors.New("the process is about to end")
	}
	return s.reading.Ready()
}
