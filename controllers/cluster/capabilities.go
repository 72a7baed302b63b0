// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// probeInterval is how often the dry run is repeated: feature gates change with an upgrade of the cluster.
	probeInterval = 10 * time.Minute
	// probeBackoff is the time to the next dry run after one that told nothing; it doubles up to probeInterval.
	probeBackoff = 5 * time.Second
	// refreshInterval is how often APIServices in the cache and the presence of KEDA are read without a notification.
	refreshInterval = 30 * time.Second
	// initialTimeout is how long policies wait for the first answers. Both take milliseconds; where they are refused or
	// late, policies go on as on a cluster of which nothing is known.
	initialTimeout = 10 * time.Second
)

// CapabilitiesConfig is what NewCapabilities needs; all fields but ExternalMetrics are required.
type CapabilitiesConfig struct {
	// APIServices are in memory and may not be there yet.
	APIServices cache.Cache
	// Server takes the dry run, in Namespace.
	Server    creator
	Namespace string
	// Own Service, to which our APIServices point.
	Own types.NamespacedName
	// ExternalMetrics says that we would serve these too.
	ExternalMetrics bool
	// KEDA says whether its kinds are installed, and Scaler how it reaches ours.
	KEDA   func() bool
	Scaler plan.Scaler
	// Policies are in memory.
	Policies   client.Reader
	Registerer prometheus.Registerer
}

// Capabilities finds out what the cluster can do, and goes on to watch it. Every replica does, so that a new leader
// knows at once. What is not known counts as a cluster where the adapter serves its metrics and
// HorizontalPodAutoscalers keep one replica: most are, so nothing changes twice at a start. It is safe for concurrent
// use.
type Capabilities struct {
	config  CapabilitiesConfig
	metrics *capabilityMetrics
	// changed is told of changes of APIServices; it holds one such word.
	changed chan struct{}
	// probed is closed when both first answers are there, or firstLook has passed.
	probed chan struct{}

	// mu guards all below.
	mu    sync.Mutex
	known known
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// known is what was found out. Fields that are nil or zero are not known yet.
type known struct {
	custom, external server
	autoscaler       *autoscalerCapabilities
	keda             *bool
}

// NewCapabilities checks the configuration and registers the metrics.
func NewCapabilities(config CapabilitiesConfig) (*Capabilities, error) {
	switch {
	case config.APIServices == nil || config.Server == nil || config.KEDA == nil || config.Policies == nil ||
		config.Registerer == nil:
		return nil, errors.New("capabilities: APIServices, Server, KEDA, Policies and Registerer must be set")
	case config.Namespace == "" || config.Own.Namespace == "" || config.Own.Name == "":
		return nil, fmt.Errorf("capabilities: Namespace is %q and Own is %q: both must be set", config.Namespace, config.Own)
	}
	metrics, err := newCapabilityMetrics(config.Registerer)
	if err != nil {
		return nil, fmt.Errorf("capabilities: %w", err)
	}
	return &Capabilities{
		config:  config,
		metrics: metrics,
		changed: make(chan struct{}, 1),
		probed:  make(chan struct{}),
	}, nil
}

// Setup completes the configuration with what a manager knows of the API server, and adds the component to it.
func Setup(mgr manager.Manager, config CapabilitiesConfig, installed func(kind string) bool) (*Capabilities, error) {
	// A cache of its own: where APIServices may not be seen, only the choice of the actuator suffers.
	services, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform:         transformAPIService,
		DefaultWatchErrorHandler: logForbiddenOnce(mgr.GetLogger()),
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache of APIServices: %w", err)
	}
	direct, err := client.New(mgr.GetConfig(),
		client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for dry runs: %w", err)
	}
	keda, err := watchPublished(mgr, KindScaledObject, installed)
	if err != nil {
		return nil, err
	}
	config.APIServices, config.Server, config.KEDA, config.Policies = services, direct, keda.available, mgr.GetCache()
	a, err := NewCapabilities(config)
	if err != nil {
		return nil, err
	}
	if err := mgr.Add(a); err != nil {
		return nil, fmt.Errorf("adding the watch of the cluster's capabilities: %w", err)
	}
	return a, nil
}

// Now is what the cluster can do, as far as it is known. Whether KEDA is there is asked at once: what was known of it
// may be of the moment before its objects were read, and a new leader would change who writes the replicas, and change
// it back.
func (a *Capabilities) Now() plan.Capabilities {
	keda := a.config.KEDA()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.known.capabilities()
	now.KEDA, now.Scaler = keda, a.config.Scaler
	return now
}

func (k known) capabilities() plan.Capabilities {
	return plan.Capabilities{
		MetricsAPIHolder: k.custom.holder, NoMetricsAPI: k.custom.absent,
		ScaleToZero: k.autoscaler != nil && k.autoscaler.scaleToZero,
		KEDA:        k.keda != nil && *k.keda,
	}
}

// NeedLeaderElection is false: see Abilities.
func (a *Capabilities) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (a *Capabilities) Start(ctx context.Context) error {
	informer, err := a.config.APIServices.GetInformer(ctx, newAPIService(), cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching APIServices: %w", err)
	}
	hear := func() {
		select {
		case a.changed <- struct{}{}:
		default: // the word is there already
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { hear() }, UpdateFunc: func(any, any) { hear() }, DeleteFunc: func(any) { hear() },
	})
	if err != nil {
		return fmt.Errorf("watching APIServices: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.config.APIServices.Start(ctx) })
	group.Go(func() error {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			hear() // the first list is heard of before all of it can be read
		}
		return nil
	})
	group.Go(func() error {
		a.watch(ctx, informer.HasSynced)
		return nil
	})
	return group.Wait()
}

// watch looks whenever there is a reason to.
func (a *Capabilities) watch(ctx context.Context, read func() bool) {
	logger := log.FromContext(ctx).WithName("capabilities")
	again, limit, probe := time.NewTicker(refreshInterval), time.NewTimer(initialTimeout), time.NewTimer(0)
	defer again.Stop()
	defer limit.Stop()
	defer probe.Stop()
	settled := sync.OnceFunc(func() { close(a.probed) })
	defer settled()
	var failing time.Duration
	for probed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			if !read() || !probed {
				logger.Info("cluster not fully probed yet, policies go on without", "apiServicesRead", read(),
					"autoscalerProbed", probed)
			}
			settled()
		case <-a.changed:
			a.refresh(ctx, logger, read)
		case <-again.C:
			a.refresh(ctx, logger, read)
		case <-probe.C:
			failing = a.probe(ctx, logger, failing)
			probe.Reset(cmp.Or(failing, probeInterval))
			probed = true
		}
		if probed && a.apiServicesKnown() {
			settled()
		}
	}
}

func (a *Capabilities) apiServicesKnown() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known.custom.known
}

// refresh takes in who serves the metrics APIs, and whether KEDA is there.
func (a *Capabilities) refresh(ctx context.Context, logger logr.Logger, read func() bool) {
	keda := a.config.KEDA()
	if !read() {
		a.update(ctx, logger, func(k *known) { k.keda = &keda })
		return
	}
	custom, err := serverOf(ctx, a.config.APIServices, customMetricsGroup(), a.config.Own)
	var external server
	if err == nil && a.config.ExternalMetrics {
		external, err = serverOf(ctx, a.config.APIServices, externalMetricsGroup(), a.config.Own)
	}
	if err != nil {
		if ctx.Err() == nil {
			logger.Error(err, "looking for who serves the metrics APIs", "lookAgainEvery", refreshInterval.String())
		}
		return
	}
	a.update(ctx, logger, func(k *known) { k.custom, k.external, k.keda = custom, external, &keda })
}

// probe asks what becomes of HorizontalPodAutoscalers. What was known stays while the answer tells nothing: then it
// returns the time until the next probe, given that of the last failure, or 0 when that was none.
func (a *Capabilities) probe(ctx context.Context, logger logr.Logger, failing time.Duration) time.Duration {
	start := time.Now()
	found, err := probeAutoscaler(ctx, a.config.Server, a.config.Namespace)
	if ctx.Err() != nil {
		return failing // stopping
	}
	a.metrics.probed(time.Since(start), err)
	if err == nil {
		a.update(ctx, logger, func(k *known) { k.autoscaler = &found })
		return 0
	}
	if failing == 0 { // else it was said already
		logger.Error(err,
			"probing what the API server makes of autoscalers: minReplicas 0 counts as refused until it is known",
			"probeAgainAfter", probeBackoff.String())
		return probeBackoff
	}
	return min(2*failing, probeInterval)
}

// update takes in a change, says so, and has every policy looked at if it matters to them.
func (a *Capabilities) update(ctx context.Context, logger logr.Logger, change func(*known)) {
	a.mu.Lock()
	before := a.known
	change(&a.known)
	after, queue := a.known, a.queue
	a.mu.Unlock()
	a.metrics.show(after)
	for i, now := range after.rows() {
		was := before.rows()[i]
		if was.text == now.text {
			continue
		}
		logger.Info("cluster capability changed", "capability", now.capability, "from", was.text, "to", now.text)
	}
	if after.external.holder != "" && after.external != before.external {
		logger.Error(errExternalForeign, "another server serves the external metrics", "holder", after.external.holder)
	}
	if queue != nil && before.capabilities() != after.capabilities() {
		a.enqueueAll(ctx, logger, queue)
	}
}
