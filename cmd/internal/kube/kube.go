// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/cmd/internal/flags"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/informer"
)

// Options are the flags.
type Options struct {
	Kubeconfig     string
	LeaseName      string
	LeaseNamespace string
	// WatchNamespaces are the namespaces with the objects that are read; none for all.
	WatchNamespaces []string
}

// NewOptions returns the defaults.
func NewOptions() Options { return Options{LeaseName: "pulsar-autoscaler-adapter"} }

// AddFlags adds --kubeconfig, --watch-namespaces, --lease-name and --lease-namespace.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig file; default: the ServiceAccount of the pod.")
	fs.StringSliceVar(&o.WatchNamespaces, "watch-namespaces", o.WatchNamespaces,
		"Namespaces, with commas between them, in which policies, targets, autoscalers and pods are read; default: all. "+
			"The permissions are needed in these only.")
	fs.StringVar(&o.LeaseName, "lease-name", o.LeaseName,
		"Lease: its holder decides for all policies.")
	fs.StringVar(&o.LeaseNamespace, "lease-namespace", o.LeaseNamespace,
		"Namespace of the Lease; default: the pod's.")
}

// Check returns what is wrong with the names.
func (o *Options) Check() []error {
	var p flags.Problems
	p.Name("lease-name", o.LeaseName, validation.IsDNS1123Subdomain)
	if o.LeaseNamespace != "" {
		p.Name("lease-namespace", o.LeaseNamespace, validation.IsDNS1123Label)
	}
	for _, namespace := range o.WatchNamespaces {
		p.Name("watch-namespaces", namespace, validation.IsDNS1123Label)
	}
	return p
}

// serviceAccountDir is where a pod finds its ServiceAccount.
const serviceAccountDir = "/var/run/secrets/kubernetes.io/serviceaccount"

// LeaseKey names the Lease.
func (o *Options) LeaseKey() (types.NamespacedName, error) {
	namespace, err := o.leaseNamespaceOr(serviceAccountDir)
	if err != nil {
		return types.NamespacedName{}, err
	}
	return types.NamespacedName{Namespace: namespace, Name: o.LeaseName}, nil
}

// leaseNamespaceOr returns the namespace of the Lease: the flag, or that of the ServiceAccount in the directory.
func (o *Options) leaseNamespaceOr(dir string) (string, error) {
	if o.LeaseNamespace != "" {
		return o.LeaseNamespace, nil
	}
	content, err := os.ReadFile(filepath.Join(dir, "namespace"))
	if err != nil {
		return "", fmt.Errorf("reading the pod's namespace: %w; set --lease-namespace outside of a cluster", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// RESTConfig returns the configuration of the API server's clients. They have no rate limit, which is
// controller-runtime's default too: with client-go's 5 a second, the decisions of 10k policies, which are in statuses,
// would take half an hour. The API server's priority and fairness protects it.
func (o *Options) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading how to reach the API server (--kubeconfig is %q): %w", o.Kubeconfig, err)
	}
	config.QPS = -1
	return config, nil
}

// NewManager returns a manager with our kinds and caches. Its own servers for metrics and probes are off: the programs
// have both. The fence may be nil, in a program that writes nothing. WatchNamespaces are then those that may be read.
func (o *Options) NewManager(ctx context.Context, lease types.NamespacedName, options ctrl.Options, fence *Fence) (
	ctrl.Manager, error,
) {
	config, err := o.RESTConfig()
	if err != nil {
		return nil, err
	}
	if fence != nil {
		config.Wrap(fence.Transport)
	}
	if options.Scheme, err = informer.Scheme(); err != nil {
		return nil, err
	}
	left, err := o.leaveOut(ctx, config, options.Scheme)
	if err != nil {
		return nil, err
	}
	options.Cache, options.NewCache = informer.CacheOptions(lease, o.WatchNamespaces), informer.NewCache
	options.Metrics.BindAddress, options.HealthProbeBindAddress = "0", "0"
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("connecting to the API server: %w", err)
	}
	if err := manager.Add(left); err != nil {
		return nil, fmt.Errorf("adding the watch of namespaces: %w", err)
	}
	return manager, nil
}

// Run runs a manager until ctx ends and all its runnables have ended. A manager that still reads its caches
// cannot be stopped, and never ends if the API server refuses it: Run returns without it, and the program must end. It
// holds no Lease by then.
//
// Source: controller-runtime 0.25, pkg/manager/runnable_group.go, and its pull request 3440.
func Run(ctx context.Context, manager ctrl.Manager) error {
	ended, read := make(chan error, 1), make(chan struct{})
	go func() {
		err := manager.Start(ctx)
		if err != nil {
			err = fmt.Errorf("running the controllers and caches: %w", err)
		}
		ended <- err
	}()
	go func() {
		if manager.GetCache().WaitForCacheSync(ctx) {
			close(read)
		}
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	select {
	case <-read:
		return <-ended
	default:
		return nil
	}
}
