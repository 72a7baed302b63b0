// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// lookForKindEvery is how often an absent kind is looked for. A watch of an absent kind would end the process after two
// minutes (controller-runtime's CacheSyncTimeout), with a message about caches.
const lookForKindEvery = 30 * time.Second

// readOptionalWithin is how long the objects of a kind that is not needed are waited for, which is less than the two
// minutes.
const readOptionalWithin = time.Minute

// errWorkloadsNotRead is why the process ends when a kind exists and its objects cannot be read.
var errWorkloadsNotRead = errors.New(
	"reading Functions, Sinks, Sources, FunctionMeshes or StatefulSets takes too long: " +
		"grant the adapter get, list and watch on them, as its ClusterRole does")

// errOptionalNotRead is what the process goes on without.
var errOptionalNotRead = errors.New(
	"reading takes too long: grant the adapter get, list and watch on the kind, as its ClusterRole does")

// kinds knows which kinds the API server has.
type kinds interface {
	RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// installation brings the objects of one kind into memory as soon as the kind exists. Every replica runs
// it.
type installation struct {
	kind  string
	kinds kinds
	cache cache.Cache
	// watch is told once, when the objects are in memory.
	watch func() error
	// every is lookForKindEvery.
	every time.Duration

	// lenient is set where the process goes on without any kind.
	lenient bool

	ready, absent atomic.Bool
	// indexed and passed are Start's own: an index can be made once, and looked closed once.
	indexed, passed bool
	// looked is closed when the kind was seen to be absent, its objects are in memory, or the process goes on without
	// them.
	looked chan struct{}
}

// installations has one for each of watchedKinds.
type installations map[string]*installation

// installed says whether objects of the kind can be read from memory.
func (all installations) installed(kind string) bool {
	i := all[kind]
	return i != nil && i.ready.Load()
}

// NeedLeaderElection is false: every replica answers for all objects.
func (i *installation) NeedLeaderElection() bool { return false }

// Start looks for the kind until it is there, reads its objects, and returns.
func (i *installation) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("installation").WithValues("kind", watchedKind(i.kind).String())
	ticker := time.NewTicker(i.every)
	defer ticker.Stop()
	for looks := 1; ; looks++ {
		informer, err := i.informer(ctx)
		switch {
		case err == nil:
			if !i.read(ctx, informer) {
				return nil // stopping
			}
			i.absent.Store(false)
			i.ready.Store(true)
			i.pass()
			logger.Info("watching objects")
			return i.watch()
		case meta.IsNoMatchError(err):
			if !i.passed {
				logger.Info("kind not installed, policies wait for it", "lookAgainEvery", i.every.String())
			}
			i.absent.Store(true)
			i.pass()
		default:
			logger.Error(err, "looking for a kind", "lookAgainEvery", i.every.String())
			if i.optional() && looks > 1 {
				i.pass()
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// optional says that policies do without the kind: of a ScaledObject that cannot be read the HorizontalPodAutoscaler is
// seen, and VerticalPodAutoscalers are only warned of.
func (i *installation) optional() bool {
	return i.lenient || i.kind == kindScaledObject || i.kind == kindVerticalPodAutoscaler
}

// pass lets those go on who wait for the first look.
func (i *installation) pass() {
	if !i.passed {
		i.passed = true
		close(i.looked)
	}
}

// read waits until the objects are in memory, and for those of an optional kind lets others go on meanwhile. It returns
// false when the process ends.
func (i *installation) read(ctx context.Context, informer cache.Informer) bool {
	if i.optional() && !i.passed {
		timed, cancel := context.WithTimeout(ctx, readOptionalWithin)
		defer cancel()
		if !toolscache.WaitForCacheSync(timed.Done(), informer.HasSynced) && ctx.Err() == nil {
			log.FromContext(ctx).WithName("installation").Error(errOptionalNotRead, "going on without a kind", "kind",
				watchedKind(i.kind).String())
			i.pass()
		}
	}
	return toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
}

// indexOf the objects of a kind; empty for those that are found by name alone.
func indexOf(kind string) (name string, by client.IndexerFunc) {
	switch {
	case slices.Contains(workloadKinds(), kind):
		return indexSubscription, indexWorkload
	case kind == kindStatefulSet:
		return indexSubscription, indexStatefulSet
	case kind == kindScaledObject || kind == kindVerticalPodAutoscaler:
		return indexScaleTarget, indexOtherAutoscaler
	case kind == kindPolicy:
		return indexScaleTarget, indexPolicy
	case kind == kindAutoscaler:
		return indexOwner, indexByScaledObject
	default:
		return "", nil
	}
}

// informer asks for the kind first: the cache reports an absent one only after it has begun to watch it.
func (i *installation) informer(ctx context.Context) (cache.Informer, error) {
	kind := watchedKind(i.kind)
	if _, err := i.kinds.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return nil, err
	}
	if !i.indexed {
		if index, by := indexOf(i.kind); index != "" {
			if err := i.cache.IndexField(ctx, newObject(i.kind), index, by); err != nil {
				return nil, fmt.Errorf("indexing: %w", err)
			}
		}
		i.indexed = true
	}
	informer, err := i.cache.GetInformer(ctx, newObject(i.kind), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watching: %w", err)
	}
	return informer, nil
}
