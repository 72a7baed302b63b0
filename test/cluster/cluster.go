// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

const (
	// defaultSyncPeriod is that of kube-controller-manager.
	defaultSyncPeriod = 15 * time.Second
	readyPoll         = 50 * time.Millisecond
	// logLines of a failed process go into the error: a trace of Java has its reason above.
	logLines = 40
)

// Config configures the control plane. The zero value is usable.
type Config struct {
	// HPASyncPeriod is the sync period of the HPA controller; 0 is 15 s, the default of Kubernetes.
	HPASyncPeriod time.Duration
	// Progress gets the progress of a build of the binaries; nil is none.
	Progress io.Writer
	// Binaries are the programs; the zero value is what binaries.BuildControlPlane returns.
	Binaries binaries.ControlPlane
	// CRDs are files of CustomResourceDefinitions to apply before the controllers start. kube-controller-manager reads the
	// kinds of the server only every 30 s: until then the HPA controller reports "unable to map kind" for later ones.
	CRDs []string
	// Controllers of kube-controller-manager in addition to those for HPAs, workloads, garbage collection, namespaces and
	// service accounts, e.g. "disruption-controller", and "-statefulset-controller" to run without one of these.
	Controllers []string
	// APIServerArgs and ControllerManagerArgs come last on the command line and override earlier flags, e.g.
	// "--feature-gates=HPAScaleToZero=true" (both servers need it).
	APIServerArgs, ControllerManagerArgs []string
}

// Cluster is a running control plane. Its methods may be called from any goroutine.
type Cluster struct {
	// Etcd, APIServer and ControllerManager are its servers. A restart of APIServer, on the same port with the data in
	// etcd, takes 2 to 4 s on an idle machine: meanwhile connections are refused, and every watch ends.
	Etcd, APIServer, ControllerManager Program
	// Client is an administrator's.
	Client client.WithWatch

	config Config
	dir    string
	ports  ports
	ids    identities
	check  *http.Client // all servers accept it
	rest   *rest.Config

	endProcesses context.CancelFunc
	stopOnce     sync.Once
}

// Start starts the control plane and returns when the API server is ready and the controllers run, which takes 3 to 6 s
// on 2 cores once the binaries are built. Stop, or the end of ctx, stops it. After an error nothing runs, and the error
// has the last lines of the failed server.
func Start(ctx context.Context, config Config) (*Cluster, error) {
	c, err := prepare(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := c.startOrStop(ctx); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, c.Stop)
	return c, nil
}

func (c *Cluster) startOrStop(ctx context.Context) error {
	err := c.start(ctx)
	if err != nil {
		c.Stop()
	}
	return err
}

// prepare does everything that needs no process.
func prepare(ctx context.Context, config Config) (*Cluster, error) {
	if config.HPASyncPeriod < 0 {
		return nil, fmt.Errorf("cluster.Config.HPASyncPeriod is %s: it must be 0 (%s) or more", config.HPASyncPeriod,
			defaultSyncPeriod)
	}
	if config.HPASyncPeriod == 0 {
		config.HPASyncPeriod = defaultSyncPeriod
	}
	if config.Binaries == (binaries.ControlPlane{}) {
		bins, err := binaries.BuildControlPlane(ctx, config.Progress)
		if err != nil {
			return nil, err
		}
		config.Binaries = bins
	}
	c := &Cluster{config: config}
	if err := c.makeDir(); err != nil {
		return nil, err
	}
	if err := c.writeFiles(); err != nil {
		c.removeDir()
		return nil, err
	}
	// The servers live until Stop, not until ctx ends: if they ended at once, the API server would wait for etcd.
	alive, end := context.WithCancel(context.WithoutCancel(ctx))
	c.endProcesses = end
	c.Etcd, c.APIServer, c.ControllerManager = c.etcd(alive), c.apiServer(alive), c.controllerManager(alive)
	return c, nil
}

func (c *Cluster) makeDir() (err error) {
	if c.dir, err = os.MkdirTemp("", "pulsar-autoscaler-cluster-"); err != nil {
		return fmt.Errorf("making the directory of the cluster: %w", err)
	}
	for _, name := range []string{"etcd", "pki", "kubeconfigs", "logs"} {
		if err := os.MkdirAll(filepath.Join(c.dir, name), 0o700); err != nil { // etcd requires 0700
			return fmt.Errorf("making the directory of the cluster: %w", err)
		}
	}
	return nil
}

// removeDir leaves a few MB in the temporary directory if it fails.
func (c *Cluster) removeDir() { _ = os.RemoveAll(c.dir) }

// writeFiles creates certificates, ports, kubeconfigs and clients.
func (c *Cluster) writeFiles() error {
	free, err := proc.FreePorts(4)
	if err != nil {
		return err
	}
	c.ports = ports{etcdClient: free[0], etcdPeer: free[1], apiServer: free[2], controllerManager: free[3]}
	if c.ids, err = newIdentities(); err != nil {
		return err
	}
	if err := c.ids.write(filepath.Join(c.dir, "pki")); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	if c.check, err = c.checkClient(); err != nil {
		return err
	}
	c.rest = c.adminConfig()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme),
		apiregistrationv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return fmt.Errorf("building the scheme: %w", err)
	}
	config := c.RESTConfig()
	config.WarningHandlerWithContext = rest.WarningLogger{} // that of controller-runtime needs a logger
	if c.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// start starts one server after another.
func (c *Cluster) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.Etcd.Restart, c.APIServer.Restart,
		func(ctx context.Context) error { return c.ApplyFiles(ctx, c.config.CRDs...) },
		c.ControllerManager.Restart, c.waitControllers,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkClient returns a client that all servers accept.
func (c *Cluster) checkClient() (*http.Client, error) {
	pair, err := tls.X509KeyPair([]byte(c.ids.admin.Certificate), []byte(c.ids.admin.Key))
	if err != nil {
		return nil, fmt.Errorf("loading the certificate of the administrator: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: c.ids.ca.Pool(), Certificates: []tls.Certificate{pair},
	}}
	return &http.Client{Transport: transport, Timeout: 5 * time.Second}, nil
}

// Stop kills all processes and removes their directory. It may be called again, from any goroutine. A graceful
// end would keep nothing of value, and takes the API server seconds.
func (c *Cluster) Stop() {
	c.stopOnce.Do(func() {
		for _, server := range []Program{c.ControllerManager, c.APIServer, c.Etcd} {
			server.Kill()
		}
		c.endProcesses()
		c.removeDir()
	})
}

// Dir is the directory of the cluster: logs/<server>.log, pki, kubeconfigs and the data of etcd.
func (c *Cluster) Dir() string { return c.dir }
