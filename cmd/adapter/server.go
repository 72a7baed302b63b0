// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/component-base/metrics/legacyregistry"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	cmametrics "sigs.k8s.io/custom-metrics-apiserver/pkg/apiserver/metrics"
	cmacmd "sigs.k8s.io/custom-metrics-apiserver/pkg/cmd"
	cma "sigs.k8s.io/custom-metrics-apiserver/pkg/provider"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/serving"
)

// requestTimeout bounds any request to the adapter, /metrics and OpenAPI included: by default Prometheus waits as long,
// and a scrape of 10,000 policies on a busy machine takes 4 s. The library's 60 s would let a slow request occupy a
// worker of the HorizontalPodAutoscaler controller.
const requestTimeout = 10 * time.Second

type serverConfig struct {
	Options *Options
	// Metrics serves the custom metrics API.
	Metrics cma.CustomMetricsProvider
	// External serves the external metrics API; nil to disable it.
	External cma.ExternalMetricsProvider
	// Registry has our own metrics for /metrics, in addition to those of the libraries.
	Registry prometheus.Gatherer
	// PolicyMetrics has the series of each policy for /metrics, in families of its own.
	PolicyMetrics func() iter.Seq[*dto.MetricFamily]
	// Certificate replaces certificate files; nil with files.
	Certificate *serving.Certificate
	// Ready are checks of /readyz. An unreachable Pulsar is not among them: an adapter that is not ready makes the API
	// group unavailable, which blocks the deletion of every namespace of the cluster.
	Ready []healthz.HealthChecker
	// Live are checks of /livez.
	Live []healthz.HealthChecker
}

// newServer builds the server of the metrics APIs, probes and /metrics, and opens its port. It does not use the
// library's RESTMapper and dynamic client: they read all of discovery at the start and never again.
func newServer(config serverConfig) (*genericapiserver.GenericAPIServer, error) {
	o := config.Options
	o.Serving.Authentication.RemoteKubeConfigFile = cmp.Or(o.Serving.Authentication.RemoteKubeConfigFile,
		o.Kube.Kubeconfig)
	o.Serving.Authorization.RemoteKubeConfigFile = cmp.Or(o.Serving.Authorization.RemoteKubeConfigFile, o.Kube.Kubeconfig)
	base := &cmacmd.AdapterBase{
		CustomMetricsAdapterServerOptions: o.Serving,
		Name:                              "pulsar-autoscaler-adapter",
		RemoteKubeConfigFile:              o.Kube.Kubeconfig,
		FlagSet:                           pflag.NewFlagSet("unused", pflag.ContinueOnError), // instead of pflag.CommandLine
	}
	base.WithCustomMetrics(config.Metrics)
	if config.External != nil {
		base.WithExternalMetrics(config.External)
	}
	settings, err := base.Config()
	if err != nil {
		return nil, fmt.Errorf("configuring the metrics API server: %w", err)
	}
	if own := config.Certificate; own != nil {
		settings.GenericConfig.SecureServing.Cert = own.Over(settings.GenericConfig.SecureServing.Cert)
		config.Ready = append(config.Ready, healthz.NamedCheck("serving-certificate",
			func(*http.Request) error { return own.Ready() }))
	}
	awaitAuthorities(settings.GenericConfig)
	settings.GenericConfig.ShutdownDelayDuration = o.ShutdownDelay
	settings.GenericConfig.RequestTimeout = requestTimeout
	settings.GenericConfig.EnableProfiling = false
	settings.GenericConfig.OpenAPIConfig.GetDefinitions = served(settings.GenericConfig.OpenAPIConfig.GetDefinitions)
	settings.GenericConfig.OpenAPIV3Config.GetDefinitions = served(settings.GenericConfig.OpenAPIV3Config.GetDefinitions)
	settings.GenericConfig.OpenAPIV3Config.Definitions = nil // all of them, which the library prefers to GetDefinitions
	api, err := base.Server()
	if err != nil {
		return nil, fmt.Errorf("building the metrics API server: %w", err)
	}
	s := api.GenericAPIServer
	if err := errors.Join(s.AddReadyzChecks(config.Ready...), s.AddLivezChecks(0, config.Live...)); err != nil {
		return nil, fmt.Errorf("adding probes: %w", err)
	}
	return s, mergeMetrics(s, config.Registry, config.PolicyMetrics)
}

// served drops the definitions of what the metrics APIs do not serve. The library adds all kinds of core/v1, keeps what
// is defined in memory, and refers to only one of them.
func served[Ref, Definition any](all func(Ref) map[string]Definition) func(Ref) map[string]Definition {
	const core = "io.k8s.api."
	return func(ref Ref) map[string]Definition {
		definitions := all(ref)
		maps.DeleteFunc(definitions, func(name string, _ Definition) bool {
			return strings.HasPrefix(name, core) && name != corev1.ObjectReference{}.OpenAPIModelName()
		})
		return definitions
	}
}

// mergeMetrics replaces the library's /metrics, which has only its own registry.
func mergeMetrics(s *genericapiserver.GenericAPIServer, registry prometheus.Gatherer,
	policies func() iter.Seq[*dto.MetricFamily],
) error {
	var registered prometheus.AlreadyRegisteredError
	if err := cmametrics.RegisterMetrics(legacyregistry.Register); err != nil && !errors.As(err, &registered) {
		return fmt.Errorf("registering the metrics of the metrics API: %w", err)
	}
	all := prometheus.Gatherers{registry, legacyregistry.DefaultGatherer, ctrlmetrics.Registry}
	mux := s.Handler.NonGoRestfulMux
	mux.Unregister("/metrics")
	mux.Handle("/metrics", gzhttp.GzipHandler(exposition{all, policies}))
	return nil
}

const (
	// authoritiesTimeout bounds the wait for certificate authorities that a cluster may not have.
	authoritiesTimeout = 5 * time.Second
	authoritiesTick    = 10 * time.Millisecond
)

// authoritiesListener accepts no connection until the authorities of clients are known, or authoritiesTimeout is over.
// The library reads them while it already serves. A client that connects before shows no certificate, and is
// system:anonymous on that connection: the aggregator would get 403 for each request of an HPA.
type authoritiesListener struct {
	net.Listener
	known func() bool

	wait, close sync.Once
	closed      chan struct{}
}

// awaitAuthorities has the server wait; without delegated authentication there is nothing to wait for.
func awaitAuthorities(config *genericapiserver.Config) {
	header, all := config.Authentication.RequestHeaderConfig, config.SecureServing.ClientCA
	if header == nil || all == nil {
		return
	}
	config.SecureServing.Listener = &authoritiesListener{
		Listener: config.SecureServing.Listener,
		closed:   make(chan struct{}),
		known: func() bool {
			// The bundle is that of clients, then that of the aggregator.
			aggregator := len(header.CAContentProvider.CurrentCABundleContent())
			return aggregator > 0 && len(all.CurrentCABundleContent()) > aggregator
		},
	}
}

// Accept implements net.Listener.
func (l *authoritiesListener) Accept() (net.Conn, error) {
	l.wait.Do(l.await)
	return l.Listener.Accept()
}

func (l *authoritiesListener) await() {
	ticker, timeout := time.NewTicker(authoritiesTick), time.NewTimer(authoritiesTimeout)
	defer ticker.Stop()
	defer timeout.Stop()
	for known := false; !known; { // and one tick more, in which the TLS configuration takes them over
		known = l.known()
		select {
		case <-l.closed:
			return
		case <-timeout.C:
			return
		case <-ticker.C:
		}
	}
}

// Close implements net.Listener. It may be called more than once.
func (l *authoritiesListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}
