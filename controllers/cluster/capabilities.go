// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// probeInterval is how often the dry run is repeated: feature gates change with an upgrade of the cluster.
	probeInterval = 10 * time.Minute
	// probeBackoff is the time to the next dry run after one that failed; it doubles up to probeInterval.
	probeBackoff = 5 * time.Second
	// refreshInterval is the time between two reads of APIServices in the cache, and of KEDA, without an event.
	refreshInterval = 30 * time.Second
	// initialTimeout is how long policies wait for the first results. Both take milliseconds; if they are refused or late,
	// policies are reconciled with unknown capabilities.
	initialTimeout = 10 * time.Second
)

// CapabilitiesConfig configures Setup, which sets APIServices, Server, Resources and Installed.
type CapabilitiesConfig struct {
	// APIServices is a cache that need not have synced yet.
	APIServices cache.Cache
	// Server gets the dry run, in Namespace.
	Server    creator
	Namespace string
	// Own is the Service of our APIServices.
	Own types.NamespacedName
	// ExternalMetrics is set if the adapter serves external metrics.
	ExternalMetrics bool
	// Installed reports whether the objects of a kind are in the cache, and Resources whether they are still served.
	Installed func(kind string) bool
	Resources ResourceLists
	// Scaler is the address of our scaler for KEDA.
	Scaler     plan.Scaler
	Registerer prometheus.Registerer
}

// Capabilities probes and watches the capabilities of the cluster, on every replica. Until known, it assumes that the
// adapter serves the metrics APIs: true of most clusters, so that a start changes nothing twice. It is safe for
// concurrent use.
type Capabilities struct {
	config  CapabilitiesConfig
	metrics *capabilityMetrics
	// changed signals events of APIServices; it holds one signal.
	changed chan struct{}
	// probed is closed when both first results are known, or initialTimeout has passed.
	probed chan struct{}
	// gone is set while ScaledObjects are in the cache, and the API server does not serve them any more.
	gone atomic.Bool

	// mu guards all below.
	mu    sync.Mutex
	known known
	// notify is called after a change; it does nothing on a replica that does not lead.
	notify func()
}

// known has the results. Fields that are nil or zero are unknown.
type known struct {
	custom, external server
	tolerance, keda  *bool
}

// newCapabilities registers the metrics.
func newCapabilities(config CapabilitiesConfig) *Capabilities {
	return &Capabilities{
		config:  config,
		metrics: newCapabilityMetrics(config.Registerer),
		changed: make(chan struct{}, 1),
		probed:  make(chan struct{}),
		notify:  func() {},
	}
}

// Setup adds the manager's parts to the configuration, and the component to the manager.
func Setup(mgr manager.Manager, config CapabilitiesConfig, installed func(kind string) bool) (*Capabilities, error) {
	// A cache of its own: without permission to list APIServices, only the choice of the actuator suffers.
	services, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		DefaultTransform:         transformAPIService,
		DefaultWatchErrorHandler: logForbiddenOnce(mgr.GetLogger()),
	})
	if err != nil {
		return nil, fmt.Errorf("creating a cache of APIServices: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("creating a client that checks kind %s: %w", KindScaledObject, err)
	}
	config.APIServices, config.Server = services, mgr.GetClient()
	config.Resources, config.Installed = resources, installed
	c := newCapabilities(config)
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding the watch of the cluster's capabilities: %w", err)
	}
	return c, nil
}

// Now returns the known capabilities. It checks KEDA at each call: an earlier result may be from before its objects
// were read, and then a new leader would change the actuator, and change it back.
func (c *Capabilities) Now() plan.Capabilities {
	keda := c.keda()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.known.capabilities()
	now.KEDA, now.Scaler = keda, c.config.Scaler
	return now
}

func (k known) capabilities() plan.Capabilities {
	return plan.Capabilities{
		MetricsAPIHolder: k.custom.holder, NoMetricsAPI: k.custom.absent,
		KEDA: k.keda != nil && *k.keda,
	}
}

// OnChange has notify called at each change.
func (c *Capabilities) OnChange(notify func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notify = notify
}

// WaitForProbe waits for the first results: otherwise a new leader would change the actuator of a policy, and change it
// back.
func (c *Capabilities) WaitForProbe(ctx context.Context) error {
	select {
	case <-c.probed:
	case <-ctx.Done(): // stopping: probed is closed long before a timeout
	}
	return nil
}

// NeedLeaderElection is false: see Capabilities.
func (c *Capabilities) NeedLeaderElection() bool { return false }

// Start watches until the context ends.
func (c *Capabilities) Start(ctx context.Context) error {
	notify := func(types.NamespacedName, client.Object) {
		select {
		case c.changed <- struct{}{}:
		default: // notified already
		}
	}
	informer, err := Follow(ctx, c.config.APIServices, &apiregistrationv1.APIService{}, notify)
	if err != nil {
		return fmt.Errorf("watching APIServices: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.config.APIServices.Start(ctx) })
	group.Go(func() error {
		if toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			notify(types.NamespacedName{}, nil) // the events of the first list precede the sync
		}
		return nil
	})
	group.Go(func() error {
		c.watch(ctx, informer.HasSynced)
		return nil
	})
	return group.Wait()
}

// watch refreshes and probes at each event or timer.
func (c *Capabilities) watch(ctx context.Context, read func() bool) {
	logger := log.FromContext(ctx).WithName("capabilities")
	again, limit, probe := time.NewTicker(refreshInterval), time.NewTimer(initialTimeout), time.NewTimer(0)
	defer again.Stop()
	defer limit.Stop()
	defer probe.Stop()
	release := sync.OnceFunc(func() { close(c.probed) })
	defer release()
	var failing time.Duration
	var unchecked bool
	for probed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-limit.C:
			if !read() || !probed {
				logger.Info("capabilities are not known yet, policies are reconciled without them", "apiServicesRead", read(),
					"autoscalerProbed", probed)
			}
			release()
		case <-c.changed:
			c.refresh(ctx, logger, read)
		case <-again.C:
			unchecked = c.checkPublished(ctx, logger, unchecked)
			c.refresh(ctx, logger, read)
		case <-probe.C:
			failing = c.probe(ctx, logger, failing)
			probe.Reset(cmp.Or(failing, probeInterval))
			probed = true
		}
		if probed && c.apiServicesKnown() {
			release()
		}
	}
}

func (c *Capabilities) apiServicesKnown() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known.custom.known
}

// refresh reads the servers of the metrics APIs, and whether KEDA is installed.
func (c *Capabilities) refresh(ctx context.Context, logger logr.Logger, read func() bool) {
	keda := c.keda()
	if !read() {
		c.update(logger, func(k *known) { k.keda = &keda })
		return
	}
	custom, err := serverOf(ctx, c.config.APIServices, CustomMetrics, c.config.Own)
	var external server
	if err == nil && c.config.ExternalMetrics {
		external, err = serverOf(ctx, c.config.APIServices, ExternalMetrics, c.config.Own)
	}
	if err != nil {
		if ctx.Err() == nil {
			logger.Error(err, "reading the servers of the metrics APIs", "retryInterval", refreshInterval.String())
		}
		return
	}
	c.update(logger, func(k *known) { k.custom, k.external, k.keda = custom, external, &keda })
}

// probe makes a dry run. A failed one changes nothing: then probe returns the time until the next one, given that of
// the last failure, or 0 when that was none.
func (c *Capabilities) probe(ctx context.Context, logger logr.Logger, failing time.Duration) time.Duration {
	start := time.Now()
	found, err := keepsTolerance(ctx, c.config.Server, c.config.Namespace)
	if ctx.Err() != nil {
		return failing // stopping
	}
	c.metrics.probed(time.Since(start), err)
	if err == nil {
		c.update(logger, func(k *known) { k.tolerance = &found })
		return 0
	}
	if failing == 0 { // the first of several
		logger.Error(err, "probing the API server with a dry run", "retryAfter", probeBackoff.String())
		return probeBackoff
	}
	return min(2*failing, probeInterval)
}

// update applies a change, logs it, and notifies if the capabilities of policies changed.
func (c *Capabilities) update(logger logr.Logger, change func(*known)) {
	c.mu.Lock()
	before := c.known
	change(&c.known)
	after, notify := c.known, c.notify
	c.mu.Unlock()
	c.metrics.show(after)
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
	if before.capabilities() != after.capabilities() {
		notify()
	}
}
