// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// DiscoveryInterval is the time between two checks for an absent kind. A watch of an absent kind would end the process
// after two minutes (controller-runtime's CacheSyncTimeout), with a message about caches.
const DiscoveryInterval = 30 * time.Second

// optionalSyncTimeout bounds the first sync of an optional kind. It is less than CacheSyncTimeout.
const optionalSyncTimeout = time.Minute

// errKindsNotRead ends the process when it cannot read the objects of a kind that exists.
var errKindsNotRead = errors.New(
	"reading Functions, Sinks, Sources, FunctionMeshes or StatefulSets takes too long: " +
		"grant the adapter get, list and watch on them, as its ClusterRole does")

// errOptionalNotRead is logged for an optional kind.
var errOptionalNotRead = errors.New(
	"reading takes too long: grant the adapter get, list and watch on the kind, as its ClusterRole does")

// restMapper has the kinds of the API server.
type restMapper interface {
	RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// Discovery adds kinds to the cache as soon as they exist.
type Discovery map[string]*kindDiscovery

// DiscoveryConfig configures NewDiscovery; all fields but Optional are required.
type DiscoveryConfig struct {
	Mapper restMapper
	Cache  cache.Cache
	Kinds  []string
	// Index of a kind's objects; without a field for kinds that are read by name alone.
	Index func(kind string) (field string, by client.IndexerFunc)
	// Optional is set when the process works without any of the kinds.
	Optional bool
}

// NewDiscovery validates the configuration. Discovery begins when the manager of AddTo starts.
func NewDiscovery(config DiscoveryConfig) (Discovery, error) {
	if config.Mapper == nil || config.Cache == nil || len(config.Kinds) == 0 || config.Index == nil {
		return nil, errors.New("discovery: Mapper, Cache, Kinds and Index must be set")
	}
	d := Discovery{}
	for _, kind := range config.Kinds {
		k := &kindDiscovery{
			kind: kind, mapper: config.Mapper, cache: config.Cache,
			optional:   config.Optional || slices.Contains(optionalKinds(), kind),
			discovered: make(chan struct{}),
		}
		k.index, k.by = config.Index(kind)
		d[kind] = k
	}
	return d, nil
}

// optionalKinds are those that policies can miss. In place of a ScaledObject the controller reads its
// HorizontalPodAutoscaler, VerticalPodAutoscalers only cause warnings, and Deployments are read one by one.
func optionalKinds() []string {
	return []string{KindScaledObject, KindVerticalPodAutoscaler, KindDeployment}
}

// AddTo adds the discovery of each kind to the manager.
func (d Discovery) AddTo(mgr manager.Manager) error {
	for kind, k := range d {
		if err := mgr.Add(k); err != nil {
			return fmt.Errorf("adding the discovery of %s: %w", kind, err)
		}
	}
	return nil
}

// OnSynced registers notify, which runs once, in order of registration, when the objects of the kind are in the cache.
// It must be called before AddTo.
func (d Discovery) OnSynced(kind string, notify func() error) {
	d[kind].onSynced = append(d[kind].onSynced, notify)
}

// Installed reports whether objects of the kind can be read from the cache.
func (d Discovery) Installed(kind string) bool {
	k := d[kind]
	return k != nil && k.synced.Load()
}

// Absent reports whether the API server does not have the kind.
func (d Discovery) Absent(kind string) bool {
	k := d[kind]
	return k != nil && k.absent.Load()
}

// Pending are the kinds that were not checked yet, sorted.
func (d Discovery) Pending() []string {
	var pending []string
	for kind, k := range d {
		select {
		case <-k.discovered:
		default:
			pending = append(pending, kind)
		}
	}
	slices.Sort(pending)
	return pending
}

// WaitForSync waits for the first check of each of the kinds. It fails at the deadline of the context.
func (d Discovery) WaitForSync(ctx context.Context, kinds ...string) error {
	for _, kind := range kinds {
		select {
		case <-d[kind].discovered:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return nil // stopping
			}
			return errKindsNotRead
		}
	}
	return nil
}

// kindDiscovery adds one kind to the cache as soon as the kind exists. Every replica runs it.
type kindDiscovery struct {
	kind   string
	mapper restMapper
	cache  cache.Cache
	index  string
	by     client.IndexerFunc
	// onSynced run once, when the objects are in the cache.
	onSynced []func() error
	// optional means that policies can miss the kind.
	optional bool

	synced, absent atomic.Bool
	// indexed and released are used by Start alone: an index can be added once, and discovered closed once.
	indexed, released bool
	// discovered is closed when the kind is absent, its objects are in the cache, or the process continues without them.
	discovered chan struct{}
}

// NeedLeaderElection is false: every replica serves all objects.
func (k *kindDiscovery) NeedLeaderElection() bool { return false }

// Start waits until the kind exists, reads its objects, and returns.
func (k *kindDiscovery) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("discovery").WithValues("kind", GVK(k.kind).String())
	ticker := time.NewTicker(DiscoveryInterval)
	defer ticker.Stop()
	for checks := 1; ; checks++ {
		informer, err := k.informer(ctx)
		switch {
		case err == nil:
			if !k.waitForSync(ctx, informer) {
				return nil // stopping
			}
			k.absent.Store(false)
			k.synced.Store(true)
			k.release()
			logger.Info("watching objects")
			return k.notify(ctx)
		case meta.IsNoMatchError(err):
			if !k.released {
				logger.Info("kind is not installed, checking again", "retryInterval", DiscoveryInterval.String())
			}
			k.absent.Store(true)
			k.release()
		default:
			logger.Error(err, "checking for a kind", "retryInterval", DiscoveryInterval.String())
			if k.optional && checks > 1 {
				k.release()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// notify calls onSynced, and does not wait for it when the process ends: a controller that starts accepts no new watch
// until all kinds are discovered, and a manager that stops does not stop controllers before discovery has ended.
func (k *kindDiscovery) notify(ctx context.Context) error {
	notified := make(chan error, 1)
	go func() {
		for _, notify := range k.onSynced {
			if err := notify(); err != nil {
				notified <- err
				return
			}
		}
		notified <- nil
	}()
	select {
	case err := <-notified:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (k *kindDiscovery) release() {
	if !k.released {
		k.released = true
		close(k.discovered)
	}
}

// waitForSync waits until the objects are in the cache. It releases an optional kind after optionalSyncTimeout. It
// returns false when the process ends.
func (k *kindDiscovery) waitForSync(ctx context.Context, informer cache.Informer) bool {
	if k.optional && !k.released {
		timed, cancel := context.WithTimeout(ctx, optionalSyncTimeout)
		defer cancel()
		if !toolscache.WaitForCacheSync(timed.Done(), informer.HasSynced) && ctx.Err() == nil {
			log.FromContext(ctx).WithName("discovery").Error(errOptionalNotRead, "continuing without a kind", "kind",
				GVK(k.kind).String())
			k.release()
		}
	}
	return toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
}

// informer checks the kind first: the cache reports an absent one only after it has begun to watch it.
func (k *kindDiscovery) informer(ctx context.Context) (cache.Informer, error) {
	kind := GVK(k.kind)
	if _, err := k.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return nil, err
	}
	if !k.indexed && k.index != "" {
		if err := k.cache.IndexField(ctx, NewObject(k.kind), k.index, k.by); err != nil {
			return nil, fmt.Errorf("indexing: %w", err)
		}
	}
	k.indexed = true
	informer, err := k.cache.GetInformer(ctx, NewObject(k.kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	return informer, nil
}

// Follow calls changed for each object of the kind that exists, and when one is created, changed or deleted: then it is
// nil.
func Follow(ctx context.Context, informers cache.Informers, kind client.Object,
	changed func(key types.NamespacedName, object client.Object),
) (cache.Informer, error) {
	informer, err := informers.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	exists := func(object any) {
		if object, ok := object.(client.Object); ok {
			changed(client.ObjectKeyFromObject(object), object)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: exists, UpdateFunc: func(_, object any) { exists(object) },
		DeleteFunc: func(object any) {
			if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
				changed(name.AsNamespacedName(), nil)
			}
		},
	})
	return informer, err
}
