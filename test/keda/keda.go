// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// namespace and service are those of KEDA's manifests.
const (
	namespace = "keda"
	service   = "keda-metrics-apiserver"
)

// Config configures KEDA. The zero value has KEDA's own defaults.
type Config struct {
	// OperatorFlags come last and override earlier ones, e.g. "--kube-api-qps=50".
	OperatorFlags []string
	// OperatorEnv entries ("KEY=value") are the operator's, e.g. "KEDA_HTTP_DEFAULT_TIMEOUT=1000".
	OperatorEnv []string
	// Progress gets the progress of a build of the binaries; nil is none.
	Progress io.Writer
}

// KEDA is a running KEDA.
type KEDA struct {
	// Operator polls triggers and activates targets; MetricsServer serves the metrics to HorizontalPodAutoscalers.
	Operator, MetricsServer *cluster.Program
	// Version of KEDA, e.g. "v2.21.0".
	Version string

	stopOnce sync.Once
	stop     context.CancelFunc
}

// ports of one KEDA on 127.0.0.1.
type ports struct{ metrics, health, service, serverSecure, serverMetrics int }

// Start installs KEDA in the cluster and returns when both programs work, from the aggregator to the operator: 10 to 20
// s on 2 cores once the binaries are built. Build them before a step with a timeout. KEDA lives until Stop, or the end
// of ctx or of its cluster; after an error nothing of it runs. Add its definitions to cluster.Config.CRDs as well: the
// HPA controller takes 30 s to see later kinds.
func Start(ctx context.Context, c *cluster.Cluster, config Config) (*KEDA, error) {
	built, err := binaries.BuildKEDA(ctx, config.Progress)
	if err != nil {
		return nil, err
	}
	if err := c.ApplyFiles(ctx, built.CRDs...); err != nil {
		return nil, err
	}
	k, err := prepare(ctx, c, built, config)
	if err != nil {
		return nil, err
	}
	starting, both := errgroup.WithContext(ctx)
	starting.Go(func() error { return k.Operator.Restart(both) })
	starting.Go(func() error { return k.MetricsServer.Restart(both) })
	if err := starting.Wait(); err != nil {
		k.Stop()
		return nil, err
	}
	return k, nil
}

// prepare does everything that needs no process.
func prepare(ctx context.Context, c *cluster.Cluster, built binaries.KEDA, config Config) (*KEDA, error) {
	free, err := proc.FreePorts(5)
	if err != nil {
		return nil, err
	}
	port := ports{metrics: free[0], health: free[1], service: free[2], serverSecure: free[3], serverMetrics: free[4]}
	serving, err := register(ctx, c, port)
	if err != nil {
		return nil, err
	}
	lifetime, stop := context.WithCancel(ctx)
	k := &KEDA{Version: built.Version, stop: stop}
	own := []string{ // as in the pods of the manifests
		"WATCH_NAMESPACE=", "POD_NAMESPACE=" + namespace, "KEDA_CLUSTER_OBJECT_NAMESPACE=" + namespace, "KUBECONFIG=" +
			c.Kubeconfig(),
	}
	k.Operator = &cluster.Program{Ready: operatorReady(port), Program: proc.NewProgram(lifetime, proc.Config{
		Name: "keda-operator", Path: built.Operator, Env: append(own, config.OperatorEnv...),
		Args:    append(operatorFlags(port, serving.dir), config.OperatorFlags...),
		LogPath: filepath.Join(c.Dir(), "logs", "keda-operator.log"),
	})}
	k.MetricsServer = &cluster.Program{Ready: metricsServerReady(c), Program: proc.NewProgram(lifetime, proc.Config{
		Name: service, Path: built.MetricsServer, Env: own,
		Args:    metricsServerFlags(c, port, serving),
		LogPath: filepath.Join(c.Dir(), "logs", service+".log"),
	})}
	return k, nil
}

// certificates are those of one KEDA.
type certificates struct {
	dir       string // for connections between operator and metrics server
	cert, key string // for connections from the aggregator
}

// register creates the namespace, the Service, the APIService and the certificates.
func register(ctx context.Context, c *cluster.Cluster, port ports) (serving certificates, err error) {
	serving.cert, serving.key, err = c.RegisterMetricsAPI(ctx, cluster.MetricsAPI{
		Namespace: namespace, Service: service, Port: port.serverSecure, Versions: cluster.ExternalMetrics(),
	})
	if err != nil {
		return serving, err
	}
	authority, err := c.NewAuthority("keda")
	if err != nil {
		return serving, err
	}
	serving.dir = authority.Dir()
	_, _, err = authority.Issue("tls", "keda-operator."+namespace+".svc")
	return serving, err
}

func operatorFlags(port ports, certDir string) []string {
	return []string{
		"--cert-dir=" + certDir, "--enable-cert-rotation=false", "--ca-dir=" + certDir,
		"--metrics-bind-address=" + local(port.metrics), "--health-probe-bind-address=" + local(port.health),
		"--metrics-service-bind-address=" + local(port.service), "--zap-log-level=info", "--zap-encoder=console",
	}
}

func metricsServerFlags(c *cluster.Cluster, port ports, serving certificates) []string {
	kubeconfig := c.Kubeconfig()
	return []string{
		"--secure-port=" + strconv.Itoa(port.serverSecure), "--bind-address=127.0.0.1", "--port=" +
			strconv.Itoa(port.serverMetrics),
		"--cert-dir=" + serving.dir, "--tls-cert-file=" + serving.cert, "--tls-private-key-file=" + serving.key,
		"--client-ca-file=" + filepath.Join(c.Dir(), "pki", "ca.crt"),
		"--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig, "--lister-kubeconfig=" +
			kubeconfig,
		"--metrics-service-address=localhost:" + strconv.Itoa(port.service),
	}
}

func local(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// operatorReady checks the operator's readiness, and that it listens for the metrics server.
func operatorReady(port ports) cluster.Condition {
	return func(ctx context.Context) (bool, string, error) {
		is, said, err := cluster.Answers(ctx, http.DefaultClient, "http://"+local(port.health)+"/readyz")
		if !is || err != nil {
			return false, said, err
		}
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", local(port.service))
		if err != nil {
			return false, "", err
		}
		return true, "", connection.Close()
	}
}

// metricsServerReady requests a metric of a missing ScaledObject through the aggregator. That it does not exist is a
// response of the operator.
func metricsServerReady(c *cluster.Cluster) cluster.Condition {
	return func(ctx context.Context) (bool, string, error) {
		clientset, err := kubernetes.NewForConfig(c.RESTConfig())
		if err != nil {
			return false, "", fmt.Errorf("making a client: %w", err)
		}
		const none = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/none"
		const patience = 5 * time.Second // without an operator the server waits for a minute
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		body, err := clientset.RESTClient().Get().AbsPath(none).Param("labelSelector",
			"scaledobject.keda.sh/name=nobody").DoRaw(ctx)
		detail := fmt.Sprintf("%s %v", body, err)
		return strings.Contains(detail, "not found") && strings.Contains(detail, "nobody"), detail, nil
	}
}

// Stop stops both programs and returns when they have ended. It may be called again.
func (k *KEDA) Stop() {
	k.stopOnce.Do(func() {
		k.MetricsServer.Kill()
		k.Operator.Kill()
		k.stop()
	})
}
