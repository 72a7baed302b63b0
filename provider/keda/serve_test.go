// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
)

// patience of tests with a network: far more than anything takes.
const patience = time.Minute

// served is a server on the loopback interface.
type served struct {
	*world
	server   *Server
	address  string
	registry *prometheus.Registry
	stop     context.CancelFunc
	ended    chan error
}

// serve runs a server until the test ends.
func serve(t *testing.T, change func(c *ServeConfig)) *served {
	t.Helper()
	w := newWorld()
	config := w.config()
	registry := prometheus.NewRegistry()
	config.Registerer, config.Now = registry, time.Now
	server, err := New(config)
	require.NoError(t, err)
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	serving := ServeConfig{Server: server, Listener: listener, Ready: func() error { return nil }, Logger: config.Logger}
	change(&serving)
	ctx, stop := context.WithCancel(t.Context())
	s := &served{world: w, server: server, address: listener.Addr().String(), registry: registry, stop: stop, ended: make(chan error, 1)}
	run := make(chan error, 1)
	go func() { run <- server.Run(ctx) }()
	go func() { s.ended <- Serve(ctx, serving) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-run)
	})
	return s
}

// dial as KEDA does, with or without TLS.
func (s *served) dial(t *testing.T, config *tls.Config) *grpc.ClientConn {
	t.Helper()
	transport := insecure.NewCredentials()
	if config != nil {
		transport = credentials.NewTLS(config)
	}
	connection, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(transport),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin":{}}]}`))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, connection.Close()) })
	return connection
}

// soon is a context that ends the test when something hangs.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestEveryCallOverTheNetwork(t *testing.T) {
	s := serve(t, func(*ServeConfig) {})
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	scaler := pb.NewExternalScalerClient(s.dial(t, nil))
	of := ref("policy", "resize")

	active, err := scaler.IsActive(soon(t), of)
	require.NoError(t, err)
	require.True(t, active.GetResult())
	spec, err := scaler.GetMetricSpec(soon(t), of)
	require.NoError(t, err)
	require.Equal(t, MetricDesiredReplicas, spec.GetMetricSpecs()[0].GetMetricName())
	metrics, err := scaler.GetMetrics(soon(t), &pb.GetMetricsRequest{ScaledObjectRef: of, MetricName: MetricDesiredReplicas})
	require.NoError(t, err)
	require.Equal(t, 7.0, metrics.GetMetricValues()[0].GetMetricValueFloat())
	_, err = scaler.GetMetrics(soon(t), &pb.GetMetricsRequest{ScaledObjectRef: of, MetricName: "other"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))

	activity, err := scaler.StreamIsActive(soon(t), of)
	require.NoError(t, err)
	told, err := activity.Recv()
	require.NoError(t, err)
	require.True(t, told.GetResult())
	specs, err := scaler.StreamMetricSpec(soon(t), of)
	require.NoError(t, err)
	toldSpec, err := specs.Recv()
	require.NoError(t, err)
	require.Equal(t, spec.String(), toldSpec.String())
	s.change(func() { s.policies[policyKey()] = decidedPolicy(0, time.Now()) })
	s.server.PolicyChanged(policyKey())
	told, err = activity.Recv()
	require.NoError(t, err)
	require.False(t, told.GetResult())

	metric := func(name string, labels ...string) float64 {
		switch name {
		case "requests":
			return testutil.ToFloat64(s.server.observed.requests.WithLabelValues(labels...))
		default:
			return testutil.ToFloat64(s.server.observed.streams.WithLabelValues(labels...))
		}
	}
	require.Equal(t, 1.0, metric("requests", "GetMetrics", "OK"))
	require.Equal(t, 1.0, metric("requests", "GetMetrics", "InvalidArgument"))
	require.Equal(t, 1.0, metric("streams", "StreamIsActive"))
	require.Equal(t, 1.0, metric("streams", "StreamMetricSpec"))
	problems, err := testutil.GatherAndLint(s.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestHealthAndReflection(t *testing.T) {
	ready := make(chan struct{})
	s := serve(t, func(c *ServeConfig) {
		c.Ready = func() error {
			select {
			case <-ready:
				return nil
			default:
				return errBrokerDown
			}
		}
	})
	connection := s.dial(t, nil)
	for _, service := range []string{"", "externalscaler.ExternalScaler"} {
		watch, err := healthpb.NewHealthClient(connection).Watch(soon(t), &healthpb.HealthCheckRequest{Service: service})
		require.NoError(t, err)
		until := func(want healthpb.HealthCheckResponse_ServingStatus) {
			for {
				answer, err := watch.Recv()
				require.NoError(t, err)
				if answer.GetStatus() == want {
					return
				}
			}
		}
		if service == "" {
			until(healthpb.HealthCheckResponse_NOT_SERVING)
			close(ready)
		}
		until(healthpb.HealthCheckResponse_SERVING)
	}
	reflected, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(soon(t))
	require.NoError(t, err)
	require.NoError(t, reflected.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "externalscaler.ExternalScaler"},
	}))
	answer, err := reflected.Recv()
	require.NoError(t, err)
	require.NotEmpty(t, answer.GetFileDescriptorResponse().GetFileDescriptorProto())
	require.NoError(t, reflected.CloseSend())
}

func TestServingEndsItsStreams(t *testing.T) {
	s := serve(t, func(*ServeConfig) {})
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	connection := s.dial(t, nil)
	activity, err := pb.NewExternalScalerClient(connection).StreamIsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err)
	_, err = activity.Recv()
	require.NoError(t, err)
	watch, err := healthpb.NewHealthClient(connection).Watch(soon(t), &healthpb.HealthCheckRequest{})
	require.NoError(t, err)
	s.stop()
	_, err = activity.Recv()
	require.ErrorIs(t, err, io.EOF, "an error would make KEDA wait longer each time")
	for err = nil; err == nil; { // health says NOT_SERVING, unless its stream has ended before
		_, err = watch.Recv()
	}
	require.NoError(t, <-s.ended)
}

func TestAnAnswerThatHangsIsGivenUp(t *testing.T) {
	s := serve(t, func(*ServeConfig) {})
	hang := make(chan struct{})
	defer close(hang)
	s.change(func() { s.hang = hang; s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	scaler := pb.NewExternalScalerClient(s.dial(t, nil))
	_, err := scaler.IsActive(soon(t), ref("topic", "orders", "subscription", "resize", "messagesPerReplica", "5"))
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))
	require.ErrorContains(t, err, "within 250ms")
	_, err = scaler.IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err, "others are answered")
}

func TestABugIsOneAnswersAlone(t *testing.T) {
	s := serve(t, func(*ServeConfig) {})
	s.change(func() { s.policies[policyKey()] = nil })
	scaler := pb.NewExternalScalerClient(s.dial(t, nil))
	_, err := scaler.IsActive(soon(t), ref("policy", "resize"))
	require.Equal(t, codes.Internal, status.Code(err))
	stream, err := scaler.StreamIsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.Equal(t, codes.Internal, status.Code(err))
}

func TestConnectionsAreRenewedAndStreamsComeBack(t *testing.T) {
	s := serve(t, func(c *ServeConfig) { c.MaxConnectionAge = leastConnectionAge })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	scaler := pb.NewExternalScalerClient(s.dial(t, nil))
	for range 3 {
		stream, err := scaler.StreamIsActive(soon(t), ref("policy", "resize"))
		require.NoError(t, err)
		told, err := stream.Recv()
		require.NoError(t, err)
		require.True(t, told.GetResult(), "the state on open")
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF, "it ends without an error")
		_, err = scaler.IsActive(soon(t), ref("policy", "resize"))
		require.NoError(t, err)
	}
}

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
}

func newAuthority(t *testing.T, name string) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{certificate, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
}

// issue a certificate for the loopback interface.
func (a authority) issue(t *testing.T, serial int64) (certificate, key []byte) {
	t.Helper()
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, a.certificate, own.Public(), a.key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(own)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// clientConfig trusts this authority and has a certificate of the other, if any.
func (a authority) clientConfig(t *testing.T, of *authority) *tls.Config {
	t.Helper()
	config := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	config.RootCAs.AddCert(a.certificate)
	if of != nil {
		pair, err := tls.X509KeyPair(of.issue(t, 9))
		require.NoError(t, err)
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}

// write the files of TLS.
func write(t *testing.T, files TLSFiles, certificate, key, clientCA []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(files.Certificate, certificate, 0o600))
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	if files.ClientCA != "" {
		require.NoError(t, os.WriteFile(files.ClientCA, clientCA, 0o600))
	}
}

func filesIn(dir string) TLSFiles {
	return TLSFiles{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key"), ClientCA: filepath.Join(dir, "ca.crt")}
}

// call the server once over a connection of its own.
func (s *served) call(t *testing.T, config *tls.Config) error {
	t.Helper()
	_, err := pb.NewExternalScalerClient(s.dial(t, config)).IsActive(soon(t), ref("policy", "resize"))
	return err
}

func TestTLSFollowsItsFiles(t *testing.T) {
	first, second := newAuthority(t, "first"), newAuthority(t, "second")
	files := filesIn(t.TempDir())
	files.ClientCA = ""
	certificate, key := first.issue(t, 2)
	write(t, files, certificate, key, nil)
	s := serve(t, func(c *ServeConfig) { c.TLS = files })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	require.NoError(t, s.call(t, first.clientConfig(t, nil)))
	require.Error(t, s.call(t, nil), "in the clear")
	old := s.dial(t, first.clientConfig(t, nil))
	_, err := pb.NewExternalScalerClient(old).IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err)

	certificate, key = second.issue(t, 3)
	require.NoError(t, os.WriteFile(files.Certificate, certificate, 0o600)) // and the key not yet
	require.NoError(t, s.call(t, first.clientConfig(t, nil)), "half of a change counts for nothing")
	require.NoError(t, os.WriteFile(files.Key, key, 0o600))
	require.NoError(t, s.call(t, second.clientConfig(t, nil)))
	require.Error(t, s.call(t, first.clientConfig(t, nil)))
	_, err = pb.NewExternalScalerClient(old).IsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err, "connections that are open go on")

	require.NoError(t, os.Remove(files.Key))
	require.NoError(t, s.call(t, second.clientConfig(t, nil)), "the former key is used while there is none")
}

func TestClientsNeedACertificateOfTheirAuthority(t *testing.T) {
	servers, clients, others := newAuthority(t, "servers"), newAuthority(t, "clients"), newAuthority(t, "others")
	files := filesIn(t.TempDir())
	certificate, key := servers.issue(t, 2)
	write(t, files, certificate, key, clients.pem)
	s := serve(t, func(c *ServeConfig) { c.TLS = files })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	require.NoError(t, s.call(t, servers.clientConfig(t, &clients)))
	require.Error(t, s.call(t, servers.clientConfig(t, nil)), "without a certificate")
	require.Error(t, s.call(t, servers.clientConfig(t, &others)), "with somebody else's")

	require.NoError(t, os.WriteFile(files.ClientCA, others.pem, 0o600))
	require.NoError(t, s.call(t, servers.clientConfig(t, &others)))
	require.Error(t, s.call(t, servers.clientConfig(t, &clients)), "trusted no more")
	require.NoError(t, os.WriteFile(files.ClientCA, []byte("no PEM"), 0o600))
	require.NoError(t, s.call(t, servers.clientConfig(t, &others)), "what is no good is not followed")
	require.Error(t, s.call(t, servers.clientConfig(t, &clients)))
}

func TestServeConfigIsChecked(t *testing.T) {
	files := filesIn(t.TempDir())
	for name, test := range map[string]struct {
		change func(c *ServeConfig)
		says   string
	}{
		"a listener must be there":       {func(c *ServeConfig) { c.Listener = nil }, "Listener, Ready and Logger must be set"},
		"connections live for a while":   {func(c *ServeConfig) { c.MaxConnectionAge = time.Millisecond }, "MaxConnectionAge is 1ms, must be from 1s to 24h0m0s"},
		"a key belongs to a certificate": {func(c *ServeConfig) { c.TLS.Key = files.Key }, "Certificate and Key must be set together"},
		"an authority needs encryption":  {func(c *ServeConfig) { c.TLS.ClientCA = files.ClientCA }, "ClientCA is set, which needs Certificate and Key"},
		"files must be there":            {func(c *ServeConfig) { c.TLS = files }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var listen net.ListenConfig
			listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer func() { require.NoError(t, listener.Close()) }()
			w := newWorld()
			config := ServeConfig{Server: w.server(t), Listener: listener, Ready: func() error { return nil }, Logger: w.config().Logger}
			test.change(&config)
			require.ErrorContains(t, Serve(t.Context(), config), test.says)
		})
	}
}
