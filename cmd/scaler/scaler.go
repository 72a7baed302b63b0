// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/connections"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/kube"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/poller"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/program"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/serving"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/keda"
)

// scaler has the program's parts, wired and not started, with its ports open.
type scaler struct {
	options  *Options
	logger   *slog.Logger
	manager  ctrl.Manager
	reading  *informer.Informers
	pulsar   *poller.Parts
	server   *keda.Server
	registry ctrlmetrics.RegistererGatherer
	// certificate for KEDA; nil if it is in files, or without TLS.
	certificate *serving.Certificate
	// grpc serves KEDA, http serves metrics and probes.
	grpc, http net.Listener
	// stopping turns true when KEDA has to connect to other replicas.
	stopping atomic.Bool
}

// newScaler wires the parts: poller -> store <- controllers <- server.
func newScaler(ctx context.Context, o *Options, logger *slog.Logger, registry ctrlmetrics.RegistererGatherer) (
	*scaler, error,
) {
	s := &scaler{options: o, logger: logger, registry: registry}
	lease, err := o.Kube.LeaseKey()
	if err != nil {
		return nil, err
	}
	store, err := backlog.NewStore(o.Poller.RateWindow, o.Poller.StaleAfter, o.Poller.Bounds)
	if err != nil {
		return nil, err
	}
	if s.manager, err = o.Kube.NewManager(ctx, lease, ctrl.Options{}, nil); err != nil {
		return nil, err
	}
	if err := s.wire(ctx, store, lease); err != nil {
		return nil, err
	}
	if s.certificate, err = o.Certificate.setup(s.manager, lease.Namespace); err != nil {
		return nil, err
	}
	return s, s.listen(ctx)
}

// wire creates the readers of Kubernetes and Pulsar, and the server.
func (s *scaler) wire(ctx context.Context, store *backlog.Store, lease types.NamespacedName) error {
	s.registry.MustRegister(program.BuildInfo())
	p, worker := s.options.Poller, &poller.LateWorker{}
	var err error
	s.reading, err = informer.Setup(ctx, s.manager, informer.Config{
		Store: store, PollInterval: p.PollInterval, Targets: p.Targets(worker), Lease: lease, Clock: time.Now,
		InstanceMetrics: p.InstanceMetrics == poller.PodInstanceMetrics, Namespaces: s.options.Kube.WatchNamespaces,
	}, func(policy types.NamespacedName) { s.server.PolicyChanged(policy) }) // once the parts run, when the server exists
	if err != nil {
		return err
	}
	named, err := connections.New(s.options.ConnectionsFile, s.reading.Targets.Credentials, s.logger)
	if err != nil {
		return err
	}
	s.pulsar, err = poller.New(poller.Config{
		Options: p, Store: store, Credentials: named, Pods: s.reading.Pods,
		Updated: func(topic backlog.Topic) { s.server.TopicChanged(topic) }, Registerer: s.registry,
	})
	if err != nil {
		return err
	}
	worker.Worker = s.pulsar.Worker
	s.server = keda.New(keda.Config{
		Policies: s.reading.Policies, DecisionMaker: s.reading.DecisionMaker,
		Signals:       signals{read: s.reading.Signals, own: p.PulsarAdminURL, named: named},
		ScaledObjects: s.reading.ScaledObjects,
		Now:           time.Now, HoldFor: s.options.HoldFor,
		MaxStreamsPerNamespace: s.options.MaxStreamsPerNamespace,
		Logger:                 s.logger, Registerer: s.registry,
	})
	return nil
}

// listen opens the ports, so that an occupied one fails at once.
func (s *scaler) listen(ctx context.Context) error {
	for _, port := range []struct {
		to            *net.Listener
		flag, address string
	}{
		{&s.grpc, "grpc-bind-address", s.options.GRPCBindAddress},
		{&s.http, "metrics-bind-address", s.options.MetricsBindAddress},
	} {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", port.address)
		if err != nil {
			return fmt.Errorf("listening at --%s: %w", port.flag, err)
		}
		*port.to = listener
	}
	return nil
}

// Run runs all parts until the context ends or one of them fails.
func (s *scaler) Run(ctx context.Context) error {
	defer s.pulsar.Source.Close()
	metrics := prometheus.Gatherers{s.registry, ctrlmetrics.Registry} // the handler ignores families that both have
	alive := func() error { return s.pulsar.Poller.Alive(time.Now()) }
	return program.Run(ctx, program.Parts{
		Serve: s.serve,
		Drain: s.drain,
		Background: []func(context.Context) error{
			s.pulsar.Poller.Run,
			func(ctx context.Context) error { return kube.Run(ctx, s.manager) },
			func(ctx context.Context) error { return serveHTTP(ctx, s.http, handler(metrics, alive, s.ready)) },
		},
	})
}

func (s *scaler) serve(ctx context.Context) error {
	if !s.awaitCertificate(ctx) {
		return nil
	}
	return keda.Serve(ctx, keda.ServeConfig{
		Server: s.server, Listener: refusing{s.grpc, s.reading.Ready, time.Now().Add(refuseWithin)}, TLS: s.tls(),
		Ready: s.ready, MaxConnectionAge: s.options.MaxConnectionAge, Logger: s.logger,
	})
}

// refuseWithin is how long after its start a replica that has not read Kubernetes refuses connections: as long as it
// waits for a kind that it may not read.
const refuseWithin = time.Minute

// refusing closes connections until it is ready, or for some time: KEDA's client then calls the other replicas. It
// would stay with one that answers with errors, such as a container that was started again.
type refusing struct {
	net.Listener
	ready func() error
	until time.Time
}

// Accept implements net.Listener.
func (r refusing) Accept() (net.Conn, error) {
	for {
		connection, err := r.Listener.Accept()
		if err != nil || r.ready() == nil || !time.Now().Before(r.until) {
			return connection, err
		}
		_ = connection.Close()
	}
}

// drain reports not ready for --shutdown-delay, and serves KEDA until it has connected to other replicas.
func (s *scaler) drain(ctx context.Context) {
	s.stopping.Store(true)
	delay := time.NewTimer(s.options.ShutdownDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
	case <-ctx.Done():
	}
}

// ready returns why this replica cannot serve KEDA; nil if it can.
func (s *scaler) ready() error {
	if s.stopping.Load() {
		return errors.New("the process is about to end")
	}
	if s.certificate != nil {
		if err := s.certificate.Ready(); err != nil {
			return err
		}
	}
	return s.reading.Ready()
}

// Bounds of the requests for metrics and probes. Prometheus waits 10 s by default, and 10,000 triggers have 8 MB of
// series.
const (
	requestTimeout = 10 * time.Second
	maxHeaderBytes = 16 << 10
)

// handler serves /metrics; /healthz, which fails when the process is stuck; and /readyz, which fails before it can
// serve KEDA and while it ends.
func handler(metrics prometheus.Gatherer, alive, ready func() error) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError}))
	for path, check := range map[string]func() error{"/healthz": alive, "/readyz": ready} {
		mux.Handle("GET "+path, healthz.CheckHandler{Checker: func(*http.Request) error { return check() }})
	}
	return mux
}

// serveHTTP serves until the context ends. It then cuts off open requests: none of them changes anything.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: maxHeaderBytes,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving metrics and probes: %w", err)
	}
	return nil
}
