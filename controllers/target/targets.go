// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// Targets finds and describes what policies scale. It is safe for concurrent use.
type Targets struct {
	Reader *Reader
	Finder *Finder
	// Patient is a Finder that waits for function workers.
	Patient *Finder
	Workers *Workers
	// Credentials of requests to Pulsar.
	Credentials *Credentials
	// Background is that of the Config.
	Background *Background
	clusters   *clusters
}

// Config configures New; all fields but OwnCredentials and those with a default are required.
type Config struct {
	// Workloads reads Functions, Sinks, Sources and StatefulSets, each as Cached, and policies, from the cache.
	Workloads client.Reader
	// Installed reports whether the kind exists and its objects are in the cache.
	Installed func(kind string) bool
	// Objects reads single ConfigMaps and Secrets from the API server.
	Objects client.Reader
	// DefaultAdminURL is the Pulsar admin service of objects that name none; empty for none.
	DefaultAdminURL string
	// Client and Resources read scale subresources of objects that are not in the cache from the API server.
	Client    client.Client
	Resources cluster.ResourceLists
	// Worker reads what function workers run.
	Worker Worker
	// Background sends requests to function workers beside the caller; nil if the caller waits for them.
	Background *Background
	// FunctionCredentials and OwnCredentials say which credentials Pulsar gets, and with WorkerCredentials which of them
	// function workers get; an empty WorkerCredentials is PolicyWorkerCredentials.
	FunctionCredentials FunctionCredentials
	OwnCredentials      OwnCredentials
	WorkerCredentials   WorkerCredentials
	// Consumers is the last measured number of consumers of a subscription, or why it is unknown.
	Consumers func(backlog.Subscription) (int, error)
	// WorkerUpdateInterval is the shortest time between two updates of one function; 0 is DefaultWorkerUpdateInterval.
	WorkerUpdateInterval time.Duration
	// PollInterval is about the time between two reconciles of a policy.
	PollInterval time.Duration
	// Now is the clock, such as time.Now.
	Now func() time.Time
}

// New validates the configuration.
func New(config Config) (*Targets, error) {
	if config.Workloads == nil || config.Installed == nil || config.Objects == nil || config.Now == nil {
		return nil, errors.New("targets: Workloads, Installed, Objects and Now must be set")
	}
	if mode := config.FunctionCredentials; mode != UseFunctionCredentials && mode != IgnoreFunctionCredentials {
		return nil, fmt.Errorf("targets: FunctionCredentials is %q, must be %s or %s", mode, UseFunctionCredentials,
			IgnoreFunctionCredentials)
	}
	if mode := config.WorkerCredentials; mode != "" && mode != PolicyWorkerCredentials && mode != OwnWorkerCredentials {
		return nil, fmt.Errorf("targets: WorkerCredentials is %q, must be %s or %s", mode, PolicyWorkerCredentials,
			OwnWorkerCredentials)
	}
	address := ""
	if config.DefaultAdminURL != "" {
		var err error
		if address, err = backlog.ParseAdminURL(config.DefaultAdminURL); err != nil {
			return nil, fmt.Errorf("targets: DefaultAdminURL %w", err)
		}
	}
	workers := newWorkers(config)
	reader := NewReader(config.Workloads, config.Installed)
	credentials := newCredentials(config)
	clusters := newClusters(config.Objects, credentials, address, config.Now)
	finder := &Finder{
		reader: reader, clusters: clusters, workers: workers, scales: &scales{
			config.Client, config.Resources, NewLookups[scaleKey, *autoscalingv1.Scale](config.Now, scaleTTL),
		},
	}
	patient := *finder
	patient.waits = true
	return &Targets{
		Reader: reader, Finder: finder, Patient: &patient,
		Workers: workers, Credentials: credentials, Background: config.Background, clusters: clusters,
	}, nil
}

// Invalidate marks the cluster of a target as failing, so that a corrected ConfigMap or Secret is noticed within
// seconds.
func (t *Targets) Invalidate(cluster backlog.Cluster) { t.clusters.invalidate(cluster) }

// SameWorker reports whether two policies that name the same function of a worker mean the same worker; true for
// policies of objects in Kubernetes. Within a namespace, one admin URL is enough: it may be the same worker under
// another name. Another namespace could block a policy if it named that admin URL, and a worker of its own.
func (t *Targets) SameWorker(ctx context.Context, a, b *v1alpha1.AutoscalingPolicy) bool {
	if a.Spec.PulsarFunctionRef.Name == "" || b.Spec.PulsarFunctionRef.Name == "" {
		return true
	}
	one, other := t.component(ctx, a), t.component(ctx, b)
	return one.Address() == other.Address() ||
		(a.Namespace == b.Namespace && one.Cluster.AdminURL == other.Cluster.AdminURL)
}

// WorkerOf is the URL of the function worker of a policy; empty if it has none.
func (t *Targets) WorkerOf(ctx context.Context, p *v1alpha1.AutoscalingPolicy) string {
	if p.Spec.PulsarFunctionRef.Name == "" {
		return ""
	}
	return t.component(ctx, p).Address()
}

// component is what a policy of a function worker scales, without credentials. It makes no request, because the policy
// alone names the cluster.
func (t *Targets) component(ctx context.Context, p *v1alpha1.AutoscalingPolicy) function.Component {
	pulsar, _ := t.clusters.find(ctx, p.Spec.Pulsar, types.NamespacedName{}) // an invalid URL is empty
	component, _ := Component(p.Spec.PulsarFunctionRef, pulsar)
	return component
}

// Forget drops cached values that no caller has requested lately.
func (t *Targets) Forget(now time.Time) {
	t.clusters.addresses.Forget(now)
	t.Credentials.forget(now)
	t.Workers.known.Forget(now)
	t.Finder.scales.known.Forget(now)
}
