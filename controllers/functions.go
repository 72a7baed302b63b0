// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// lookForKindEvery is how often an absent kind is looked for. A watch of an absent kind would end the process after two
// minutes (controller-runtime's CacheSyncTimeout), with a message about caches.
const lookForKindEvery = 30 * time.Second

// errFunctionsNotRead is why the process ends when the kind exists and its objects cannot be read.
var errFunctionsNotRead = errors.New("reading Functions of compute.functionmesh.io/v1alpha1 takes too long: " +
	"grant the adapter get, list and watch on functions.compute.functionmesh.io")

// kinds knows which kinds the API server has.
type kinds interface {
	RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// functions brings the Functions into memory as soon as their kind exists. Every replica runs it.
type functions struct {
	kinds kinds
	cache cache.Cache
	// watch is told once, when the Functions are in memory.
	watch func() error
	// every is lookForKindEvery.
	every time.Duration

	ready atomic.Bool
	// looked is closed when the kind was seen to be absent, or its objects are in memory.
	looked chan struct{}
}

// installed says whether Functions can be read from memory.
func (f *functions) installed() bool { return f.ready.Load() }

// NeedLeaderElection is false: every replica answers for Functions.
func (f *functions) NeedLeaderElection() bool { return false }

// Start looks for the kind until it is there, reads its objects, and returns.
func (f *functions) Start(ctx context.Context) error {
	logger := log.FromContext(ctx).WithName("functions")
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	for absent := false; ; {
		informer, err := f.informer(ctx)
		switch {
		case err == nil:
			if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				return nil // stopping
			}
			f.ready.Store(true)
			if !absent {
				close(f.looked)
			}
			logger.Info("watching functions")
			return f.watch()
		case meta.IsNoMatchError(err) && !absent:
			absent = true
			close(f.looked)
			logger.Info("kind not installed, policies wait for it", "kind", functionKind().String(), "lookAgainEvery", f.every.String())
		case !meta.IsNoMatchError(err):
			logger.Error(err, "looking for functions", "lookAgainEvery", f.every.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// informer asks for the kind first: the cache reports an absent one only after it has begun to watch it.
func (f *functions) informer(ctx context.Context) (cache.Informer, error) {
	kind := functionKind()
	if _, err := f.kinds.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
		return nil, err
	}
	return f.cache.GetInformer(ctx, newFunction(), cache.BlockUntilSynced(false))
}
