// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

const (
	// lookEvery is the interval at which Services are read.
	lookEvery = 200 * time.Millisecond
	// firstAddress is the first of pods; those before are the node's.
	firstAddress = 10
	// mostPods keeps addresses within one byte.
	mostPods = 240
)

// Controllers are controllers of kube-controller-manager that pods need in addition to the default ones.
func Controllers() []string {
	return []string{"endpoints-controller", "endpointslice-controller", "root-ca-certificate-publisher-controller"}
}

// Config configures a node. All fields are required.
type Config struct {
	// REST is the configuration of an administrator without a rate limit.
	REST *rest.Config
	// Name of the Node.
	Name string
	// Namespaces have the pods for this node; it ignores others.
	Namespaces []string
	// Images are directories of OCI layouts, by the image name of a container. Others are pulled if their registry is on
	// 127.0.0.1.
	Images map[string]string
	// Unpacker is the program of tools/release/unpack.
	Unpacker string
}

// Node runs pods.
type Node struct {
	config Config
	client kubernetes.Interface
	pods   *pods.Runner
	proxy  *proxy
	names  *names
	dir    string
	images *images

	mu     sync.Mutex // guards the fields below, and images
	number int
	err    error // of the last look
}

// New registers the node. Run runs it.
func New(ctx context.Context, config Config) (_ *Node, err error) {
	n := &Node{config: config}
	if n.client, err = kubernetes.NewForConfig(config.REST); err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	namespaces := map[string]cache.Config{}
	for _, name := range config.Namespaces {
		namespaces[name] = cache.Config{}
	}
	n.pods, err = pods.New(pods.Config{
		REST: config.REST, Find: n.find, Node: config.Name,
		Options: func(o *ctrl.Options) { o.Cache.DefaultNamespaces = namespaces },
	})
	if err != nil {
		return nil, err
	}
	if n.proxy, err = newProxy(n.client, config.REST.Host); err != nil {
		return nil, err
	}
	if n.dir, err = os.MkdirTemp("", "pulsar-autoscaler-node-"); err != nil {
		return nil, fmt.Errorf("making the node's directory: %w", err)
	}
	if err := n.prepare(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(n.dir))
	}
	return n, nil
}

func (n *Node) prepare(ctx context.Context) (err error) {
	if n.names, err = newNames(n.dir); err != nil {
		return err
	}
	n.images = &images{
		unpacker: n.config.Unpacker, dir: n.dir, layouts: n.config.Images, unpacked: map[string]image{},
	}
	_, err = n.client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.config.Name}},
		metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("registering the node: %w", err)
	}
	return nil
}

// Run runs pods and forwards connections to Services until ctx ends, and returns when no process is left.
func (n *Node) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return n.pods.Run(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		err := n.look(ctx)
		n.mu.Lock()
		n.err = err
		n.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	n.proxy.close()
	return errors.Join(group.Wait(), os.RemoveAll(n.dir))
}

// Explain returns the last error, and the state and the last lines of each pod, for a failed test.
func (n *Node) Explain() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprintf("the node's last error: %v\n%s", n.err, n.pods.Explain())
}

// look reads Services once.
func (n *Node) look(ctx context.Context) error {
	headless, err := n.proxy.follow(ctx)
	if err != nil {
		return err
	}
	return n.names.set(headless)
}
