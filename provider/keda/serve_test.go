// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	"google.golang.org/grpc/test/bufconn"
)

// patience bounds tests with a network: far more than they need.
const patience = time.Minute

// servedScaler is a server on the loopback interface.
type servedScaler struct {
	*environment
	server   *Server
	address  string
	registry *prometheus.Registry
	stop     context.CancelFunc
	ended    chan error
}

// serve runs a server until the test ends.
func serve(t *testing.T, change func(c *ServeConfig)) *servedScaler {
	t.Helper()
	env := newEnvironment()
	config := env.config()
	registry := prometheus.NewRegistry()
	config.Registerer, config.Now = registry, time.Now
	server := New(config)
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	serving := ServeConfig{Server: server, Listener: listener, Ready: func() error { return nil }, Logger: config.Logger}
	change(&serving)
	ctx, stop := context.WithCancel(t.Context())
	s := &servedScaler{
		environment: env, server: server, address: listener.Addr().String(), registry: registry, stop: stop,
		ended: make(chan error, 1),
	}
	go func() { s.ended <- Serve(ctx, serving) }()
	t.Cleanup(stop)
	return s
}

// dial connects as KEDA does, with or without TLS.
func (s *servedScaler) dial(t *testing.T, config *tls.Config) *grpc.ClientConn {
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

// soon is a context that ends the test if something hangs.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func TestEveryCallOverTheNetwork(t *testing.T) {
	s := serve(t, func(*ServeConfig) {})
	s.change(func() {
		policy := decidedPolicy(7, time.Now())
		policy.Spec.Strategies = withStrategies().Spec.Strategies
		s.policies[policyKey()] = policy
	})
	scaler := pb.NewExternalScalerClient(s.dial(t, nil))
	of := ref("policy", "resize")

	active, err := scaler.IsActive(soon(t), of)
	require.NoError(t, err)
	require.True(t, active.GetResult())
	spec, err := scaler.GetMetricSpec(soon(t), of)
	require.NoError(t, err)
	require.Equal(t, MetricDesiredReplicas, spec.GetMetricSpecs()[0].GetMetricName())
	metrics, err := scaler.GetMetrics(soon(t),
		&pb.GetMetricsRequest{ScaledObjectRef: of, MetricName: MetricDesiredReplicas})
	require.NoError(t, err)
	require.Equal(t, 7.0, metrics.GetMetricValues()[0].GetMetricValueFloat())
	_, err = scaler.GetMetrics(soon(t), &pb.GetMetricsRequest{ScaledObjectRef: of, MetricName: "other"})
	require.Equal(t, codes.InvalidArgument, status.Code(err))

	activity, err := scaler.StreamIsActive(soon(t), of)
	require.NoError(t, err)
	sent, err := activity.Recv()
	require.NoError(t, err)
	require.True(t, sent.GetResult())
	borrowing := ref("policy", "resize", "strategy", "BacklogPerReplica")
	spec, err = scaler.GetMetricSpec(soon(t), borrowing)
	require.NoError(t, err)
	specs, err := scaler.StreamMetricSpec(soon(t), borrowing)
	require.NoError(t, err)
	toldSpec, err := specs.Recv()
	require.NoError(t, err)
	require.Equal(t, spec.String(), toldSpec.String())
	s.change(func() { s.policies[policyKey()] = decidedPolicy(0, time.Now()) })
	s.server.PolicyChanged(policyKey())
	sent, err = activity.Recv()
	require.NoError(t, err)
	require.False(t, sent.GetResult())

	for _, code := range []codes.Code{codes.OK, codes.InvalidArgument} {
		requests := s.server.metrics.requests.WithLabelValues("GetMetrics", code.String())
		require.Equal(t, 1.0, testutil.ToFloat64(requests))
	}
	for _, method := range []string{"StreamIsActive", "StreamMetricSpec"} {
		require.Equal(t, 1.0, testutil.ToFloat64(s.server.metrics.streams.WithLabelValues(method)))
	}
	problems, err := testutil.GatherAndLint(s.registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestHealth(t *testing.T) {
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
}

// TestTheServicesAreNotListed: reflection would tell every client what there is.
func TestTheServicesAreNotListed(t *testing.T) {
	connection := serve(t, func(*ServeConfig) {}).dial(t, nil)
	reflected, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(soon(t))
	require.NoError(t, err)
	_, err = reflected.Recv()
	require.Equal(t, codes.Unimplemented, status.Code(err))
}

func TestServingEndsItsStreams(t *testing.T) {
	s := serve(t, func(*ServeConfig) {})
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	activity, err := pb.NewExternalScalerClient(s.dial(t, nil)).StreamIsActive(soon(t), ref("policy", "resize"))
	require.NoError(t, err)
	_, err = activity.Recv()
	require.NoError(t, err)
	s.stop()
	_, err = activity.Recv()
	require.ErrorIs(t, err, io.EOF, "an error would make KEDA wait longer each time")
	require.NoError(t, <-s.ended)
}

func TestAHangingRequestIsAbandoned(t *testing.T) {
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

func TestAPanicAffectsOneRequest(t *testing.T) {
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
	s := serve(t, func(c *ServeConfig) { c.MaxConnectionAge = time.Second })
	s.change(func() { s.policies[policyKey()] = decidedPolicy(7, time.Now()) })
	scaler := pb.NewExternalScalerClient(s.dial(t, nil))
	for range 3 {
		stream, err := scaler.StreamIsActive(soon(t), ref("policy", "resize"))
		require.NoError(t, err)
		sent, err := stream.Recv()
		require.NoError(t, err)
		require.True(t, sent.GetResult(), "the state on open")
		_, err = stream.Recv()
		require.ErrorIs(t, err, io.EOF, "it ends without an error")
		_, err = scaler.IsActive(soon(t), ref("policy", "resize"))
		require.NoError(t, err)
	}
}

func TestCertificateFilesMustBeThere(t *testing.T) {
	env := newEnvironment()
	config := ServeConfig{Server: env.server(), TLS: filesIn(t.TempDir()).Read, Logger: env.config().Logger}
	require.ErrorContains(t, Serve(t.Context(), config), "no such file")
}

// vanishing is a connection of a client that sends no more bytes, as after a crash of its machine.
type vanishing struct {
	net.Conn

	gone *atomic.Bool
}

func (v vanishing) Write(b []byte) (int, error) {
	if v.gone.Load() {
		return len(b), nil
	}
	return v.Conn.Write(b)
}

func TestStreamsOfAClientThatVanishesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		env := newEnvironment()
		env.policies[policyKey()] = decidedPolicy(3, time.Now())
		config := env.config()
		config.Now = time.Now
		server, listener, ended := New(config), bufconn.Listen(1<<16), make(chan error)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			ended <- Serve(ctx, ServeConfig{
				Server: server, Listener: listener, Ready: func() error { return nil }, Logger: config.Logger,
				MaxConnectionAge: 24 * time.Hour,
			})
		}()
		gone := &atomic.Bool{}
		connection, err := grpc.NewClient("passthrough:scaler", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
				dialled, err := listener.DialContext(ctx)
				return vanishing{dialled, gone}, err
			}))
		require.NoError(t, err)
		defer func() {
			require.NoError(t, connection.Close())
			stop()
			require.NoError(t, <-ended)
		}()
		stream, err := pb.NewExternalScalerClient(connection).StreamIsActive(t.Context(), ref("policy", "resize"))
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		open := func() float64 { return testutil.ToFloat64(server.metrics.streams.WithLabelValues("StreamIsActive")) }
		time.Sleep(time.Hour)
		require.Equal(t, 1.0, open(), "it answers pings")
		gone.Store(true)
		time.Sleep(pingAfter + pingWithin + time.Second)
		require.Zero(t, open())
	})
}
