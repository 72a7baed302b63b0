// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// namespace and serviceAccount are those of deploy/rbac.
const (
	namespace      = "pulsar-autoscaler"
	serviceAccount = "adapter"
)

// logLines are shown of a program's log.
const logLines = 40

// Adapter is the product as a process with its own user, with the permissions of deploy/rbac, behind the real
// aggregator.
type Adapter struct {
	// Program is ready also if the aggregator does not know it.
	cluster.Program

	flags, env []string
	// URL is its address without the aggregator, and TLS the authority and the name of its certificate, as the aggregator
	// verifies them.
	URL string
	TLS rest.TLSClientConfig
}

// Build builds a program of the product, such as ./cmd/adapter.
func Build(ctx context.Context, program, path string) error {
	sources, err := binaries.Checkout()
	if err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", "build", "-o", path, program)
	command.Dir = sources
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w: %s", program, err, out)
	}
	return nil
}

// startAdapter applies the manifests, registers the metrics API and starts the process.
func startAdapter(ctx context.Context, s *Stage, config Config) (*Adapter, error) {
	rbac, err := filepath.Glob(filepath.Join(s.sources, "deploy", "rbac", "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("listing manifests: %w", err)
	}
	manifests := append([]string{filepath.Join(s.sources, "deploy", "adapter", "namespace.yaml")}, rbac...)
	if err := s.Cluster.ApplyFiles(ctx, manifests...); err != nil {
		return nil, err
	}
	port, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	api := cluster.MetricsAPI{Namespace: namespace, Service: "adapter", Port: port, Versions: cluster.CustomMetrics()}
	if slices.Contains(config.AdapterFlags, "--external-metrics") {
		api.Versions = append(api.Versions, cluster.ExternalMetrics()...)
	}
	cert, key, err := s.Cluster.RegisterMetricsAPI(ctx, api)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := s.Cluster.ServiceAccountKubeconfig(ctx, namespace, serviceAccount)
	if err != nil {
		return nil, err
	}
	flags := []string{
		"--kubeconfig=" + kubeconfig, "--lease-namespace=" + namespace,
		"--bind-address=127.0.0.1", "--tls-cert-file=" + cert, "--tls-private-key-file=" + key,
		"--allowed-pulsar-hosts=" + config.AdminURL, "--log-format=text", "--shutdown-delay=0s",
	}
	if config.KEDA != nil {
		flags = append(flags, "--keda-scaler-address="+address(s.scalerPort))
	}
	a := s.newAdapter(ctx, "adapter", port, append(flags, config.AdapterFlags...), config.AdapterEnv)
	a.TLS.CAFile, a.TLS.ServerName = filepath.Join(filepath.Dir(cert), "ca.crt"), "adapter."+namespace+".svc"
	if err := a.Start(ctx, s); err != nil {
		return nil, err
	}
	return a, nil
}

func (s *Stage) newAdapter(lifetime context.Context, name string, port int, flags, env []string) *Adapter {
	a := &Adapter{flags: flags, env: env, URL: "https://127.0.0.1:" + strconv.Itoa(port)}
	a.Program = cluster.Program{
		Program: proc.NewProgram(lifetime, proc.Config{
			Name: name, Path: s.built, Args: append(slices.Clone(flags), "--secure-port="+strconv.Itoa(port)),
			LogPath: filepath.Join(s.dir, name+".log"), Env: env,
		}),
		Ready: func(ctx context.Context) (bool, string, error) {
			_, err := s.Ask(ctx, a, "/readyz")
			return err == nil, "", err
		},
	}
	return a
}

// AddAdapter starts another replica of the adapter, with flags that override those of the first. It waits for the Lease
// of the first, and responds only to Ask: the aggregator does not know it. It lives until Kill, Stop or the end of ctx.
func (s *Stage) AddAdapter(ctx context.Context, name string, flags ...string) (*Adapter, error) {
	port, err := proc.FreePort()
	if err != nil {
		return nil, err
	}
	a := s.newAdapter(ctx, name, port, append(slices.Clone(s.Adapter.flags), flags...), s.Adapter.env)
	if err := a.Restart(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.added = append(s.added, a)
	return a, nil
}

// allAdapters are the first one, if any, and those that were added.
func (s *Stage) allAdapters() []*Adapter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.Adapter == nil {
		return nil
	}
	return append([]*Adapter{s.Adapter}, s.added...)
}

// Ask requests a path from an adapter as an administrator, without the aggregator.
func (s *Stage) Ask(ctx context.Context, a *Adapter, path string) ([]byte, error) {
	config := s.Cluster.RESTConfig()
	config.Host = a.URL
	config.CAData, config.Insecure = nil, true // its certificate is for its name in the cluster
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of adapter %s: %w", a.Name(), err)
	}
	result := clientset.RESTClient().Get().AbsPath(path).Do(ctx)
	if err := result.Error(); err != nil { // Raw alone drops the server's message
		return nil, fmt.Errorf("asking adapter %s: %w", a.Name(), err)
	}
	return result.Raw()
}

// Start starts the process, also after Kill, and returns when the aggregator reaches it.
func (a *Adapter) Start(ctx context.Context, s *Stage) error {
	if err := a.Launch(); err != nil {
		return err
	}
	if err := s.Cluster.WaitMetricsAPI(ctx); err != nil {
		a.Kill()
		return fmt.Errorf("%w; the adapter's last lines:\n%s", err, a.LogTail())
	}
	return nil
}

// LogTail returns the last lines of the adapter's log.
func (a *Adapter) LogTail() string { return a.Program.LogTail(logLines) }
