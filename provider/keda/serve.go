// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

const (
	// DefaultMaxConnectionAge of ServeConfig.
	DefaultMaxConnectionAge = 5 * time.Minute

	// maxRequest bounds a request in bytes: the metadata of a trigger takes a few hundred.
	maxRequest = 1 << 20
	// maxHeaders bounds its headers.
	maxHeaders = 64 << 10
	// maxStreamsPerConnection includes requests. It exceeds MaxStreams, so that a request always finds room: otherwise a
	// client waits silently, and KEDA without a timeout.
	maxStreamsPerConnection = MaxStreams + 10_000
	// handshakeWithin is how long a connection may take to be set up.
	handshakeWithin = 10 * time.Second
	// drainWithin is how long requests and streams may take to end after the context.
	drainWithin = 5 * time.Second
	// refreshWithin is how long a refresh of all streams and the pause after it may take.
	refreshWithin = 10 * time.Second
	// readyEvery is how often health is checked.
	readyEvery = time.Second

	// A connection that is silent for pingAfter is pinged, and closed after pingWithin without a response, so that the
	// streams of a vanished client end; one that is too old is not pinged any more, and closed once its streams are old.
	// Clients may ping every pingsEvery; KEDA does not.
	pingAfter, pingWithin, pingsEvery = 30 * time.Second, 20 * time.Second, 5 * time.Second
)

// ServeConfig configures Serve; Server, Listener, Ready and Logger are required.
type ServeConfig struct {
	Server *Server
	// Listener accepts connections; Serve closes it.
	Listener net.Listener
	// TLS is called at each handshake, so that a change takes effect; nil for plain text.
	TLS func() (TLSContent, error)
	// Ready returns why health is NOT_SERVING; nil for SERVING.
	Ready func() error
	// MaxConnectionAge makes clients reconnect, so that they see all replicas of the scaler, 5m by default.
	// gRPC adds or subtracts up to a tenth. A stream ends without an error when it is older than that, see endOf.
	MaxConnectionAge time.Duration
	Logger           *slog.Logger
}

// Serve serves the listener until the context ends: then health is NOT_SERVING, streams of KEDA end without an error,
// and requests and those that watch the health have a few seconds to end.
func Serve(ctx context.Context, config ServeConfig) error {
	group, ctx := errgroup.WithContext(ctx)
	options, err := config.options()
	if err != nil {
		return err
	}
	server := grpc.NewServer(options...)
	pb.RegisterExternalScalerServer(server, config.Server)
	healthy := health.NewServer()
	healthpb.RegisterHealthServer(server, healthy)

	group.Go(func() error {
		config.Server.run(ctx)
		return nil
	})
	group.Go(func() error {
		if err := server.Serve(config.Listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serving KEDA: %w", err)
		}
		return nil
	})
	group.Go(func() error {
		reportHealth(ctx, healthy, config.Ready)
		stop(server)
		return nil
	})
	return group.Wait()
}

// options of the server. Clients leave a connection at about MaxConnectionAge. A stream ends within 4/3 of that, and
// the next refresh, after it was opened (endOf): before gRPC cuts the connection off.
func (config *ServeConfig) options() ([]grpc.ServerOption, error) {
	age := cmp.Or(config.MaxConnectionAge, DefaultMaxConnectionAge)
	between := &interceptors{
		metrics: config.Server.metrics, logger: config.Logger, limiter: response.NewLimiter("scaler"),
	}
	config.Server.connectionAge = age
	options := []grpc.ServerOption{
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: age, MaxConnectionAgeGrace: age + age/3 + refreshWithin, Time: pingAfter, Timeout: pingWithin,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsEvery, PermitWithoutStream: true}),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxHeaderListSize(maxHeaders),
		grpc.MaxConcurrentStreams(maxStreamsPerConnection),
		grpc.ConnectionTimeout(handshakeWithin),
		grpc.UnaryInterceptor(between.unary), grpc.StreamInterceptor(between.stream),
	}
	if config.TLS != nil {
		certificates, err := newCertificates(config.TLS, config.Logger)
		if err != nil {
			return nil, err
		}
		options = append(options, grpc.Creds(credentials.NewTLS(certificates.serverConfig())))
	}
	return options, nil
}

// reportHealth sets the health of the server and of the scaler until the context ends.
func reportHealth(ctx context.Context, healthy *health.Server, ready func() error) {
	defer healthy.Shutdown()
	wait.UntilWithContext(ctx, func(context.Context) {
		is := healthpb.HealthCheckResponse_SERVING
		if ready() != nil {
			is = healthpb.HealthCheckResponse_NOT_SERVING
		}
		healthy.SetServingStatus("", is)
		healthy.SetServingStatus(pb.ExternalScaler_ServiceDesc.ServiceName, is)
	}, readyEvery)
}

// stop waits for requests up to drainWithin.
func stop(server *grpc.Server) {
	hard := time.AfterFunc(drainWithin, server.Stop)
	defer hard.Stop()
	server.GracefulStop()
}

// TLSContent is the server's TLS material, in PEM.
type TLSContent struct {
	// Certificate with its chain, and its Key.
	Certificate, Key []byte
	// VerifyClients requires client certificates that ClientCA has signed.
	VerifyClients bool
	ClientCA      []byte
}

// TLSFiles are PEM files of a TLSContent; ClientCA may be empty.
type TLSFiles struct{ Certificate, Key, ClientCA string }

// Read reads the files.
func (f TLSFiles) Read() (TLSContent, error) {
	content := TLSContent{VerifyClients: f.ClientCA != ""}
	for _, file := range []struct {
		path string
		to   *[]byte
	}{{f.Certificate, &content.Certificate}, {f.Key, &content.Key}, {f.ClientCA, &content.ClientCA}} {
		if file.path == "" {
			continue
		}
		read, err := os.ReadFile(file.path)
		if err != nil {
			return TLSContent{}, err
		}
		*file.to = read
	}
	return content, nil
}

// certificates reads the content at each handshake. It is safe for concurrent use.
type certificates struct {
	read   func() (TLSContent, error)
	logger *slog.Logger

	// mu guards all below.
	mu sync.Mutex
	// config is from the last good content.
	config *tls.Config
	// problem is why the content is not used, as logged; empty if it is.
	problem string
}

// newCertificates fails if the content cannot be used at the start.
func newCertificates(read func() (TLSContent, error), logger *slog.Logger) (*certificates, error) {
	config, err := load(read)
	if err != nil {
		return nil, err
	}
	return &certificates{read: read, logger: logger, config: config}, nil
}

// serverConfig reads at each handshake.
func (c *certificates) serverConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return c.current(), nil },
	}
}

// current returns the configuration for the current content, or the last good one while the current one is unusable,
// such as half written.
func (c *certificates) current() *tls.Config {
	config, err := load(c.read)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil:
		leaf, before := config.Certificates[0].Leaf, c.config.Certificates[0].Leaf
		if !leaf.Equal(before) || !config.ClientCAs.Equal(c.config.ClientCAs) {
			c.logger.Info("TLS certificates have changed", "certificateExpires", leaf.NotAfter.UTC().Format(time.RFC3339))
		}
		c.config, c.problem = config, ""
	case err.Error() != c.problem:
		c.problem = err.Error()
		c.logger.Error("TLS certificates cannot be used, using the last good ones", "error", err)
	}
	return c.config
}

// load disables session tickets: one would admit a client with an authority that is not trusted any more.
func load(read func() (TLSContent, error)) (*tls.Config, error) {
	content, err := read()
	if err != nil {
		return nil, fmt.Errorf("keda: TLS: %w", err)
	}
	pair, err := tls.X509KeyPair(content.Certificate, content.Key)
	if err != nil {
		return nil, fmt.Errorf("keda: TLS: certificate and key: %w", err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{pair},
		SessionTicketsDisabled: true,
	}
	if !content.VerifyClients {
		return config, nil
	}
	config.ClientCAs, config.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
	if !config.ClientCAs.AppendCertsFromPEM(content.ClientCA) {
		return nil, errors.New("keda: TLS: the authorities of clients have no certificate in PEM")
	}
	return config, nil
}
