// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

const (
	// workerPlaces are the requests to one function worker at a time, and allPlaces those to all. Requests to no worker
	// have workerPlaces too, even if workers have all.
	workerPlaces, allPlaces = 4, 64
)

// Background resolves signals and runs the requests to function workers, so that no reconcile and no other resolution
// waits for one. The namespaces that ask take turns for the places of a worker. It is safe for concurrent use.
type Background struct {
	wake chan struct{}

	mu sync.Mutex
	// wanted are the requests for policies that wait or run. It bounds their number.
	wanted  map[purpose]bool
	workers map[string]*workerTurns
	// running are the requests to workers.
	running int
}

// purpose of a request: to read the state of a component, or to update it.
type purpose struct {
	component function.Component
	update    bool
}

// workerTurns are the requests to one worker: those of policies and those of signals, which take turns.
type workerTurns struct {
	running int
	queues  [2]Turns[func(context.Context)]
	last    int
}

// The queues of workerTurns.
const (
	ofPolicies = iota
	ofSignals
)

func (w *workerTurns) next() (request func(context.Context), some bool) {
	for range w.queues {
		w.last = (w.last + 1) % len(w.queues)
		if request, some = w.queues[w.last].Next(); some {
			return request, true
		}
	}
	return nil, false
}

// NewBackground returns one that runs requests while Start does.
func NewBackground() *Background {
	return &Background{
		wake: make(chan struct{}, 1), wanted: map[purpose]bool{}, workers: map[string]*workerTurns{},
	}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: it serves whatever asks in this process.
func (b *Background) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (b *Background) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for {
		for request := b.next(ctx); request != nil; request = b.next(ctx) {
			group.Go(func() error {
				request(ctx)
				return nil
			})
		}
		select {
		case <-ctx.Done():
			return group.Wait()
		case <-b.wake:
		}
	}
}

// run queues a request for a policy in the namespace, unless there is one for the same purpose. Without a Background it
// runs the request now.
func (b *Background) run(ctx context.Context, namespace string, what purpose, request func(context.Context)) {
	if b == nil {
		request(ctx)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wanted[what] || len(b.wanted) >= maxLookups {
		return
	}
	b.wanted[what] = true
	b.add(ofPolicies, namespace, what.component.Address(), func(ctx context.Context) {
		defer b.unwanted(what)
		request(ctx)
	})
}

// Add queues a request of a namespace for signals to the worker at that URL, or to none if it is empty. The caller
// bounds their number.
func (b *Background) Add(namespace, address string, request func(context.Context)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(ofSignals, namespace, address, request)
}

// add queues a request; b is locked.
func (b *Background) add(queue int, namespace, address string, request func(context.Context)) {
	w := b.workers[address]
	if w == nil {
		w = &workerTurns{}
		b.workers[address] = w
	}
	w.queues[queue].Add(namespace, func(ctx context.Context) {
		defer b.done(address)
		request(ctx)
	})
	b.notify()
}

// next returns a request that may run now; nil if there is none, or after the end.
func (b *Background) next(ctx context.Context) func(context.Context) {
	if ctx.Err() != nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for address, w := range b.workers {
		if w.running >= workerPlaces || (address != "" && b.running >= allPlaces) {
			continue
		}
		request, some := w.next()
		if !some {
			continue
		}
		w.running++
		if address != "" {
			b.running++
		}
		return request
	}
	return nil
}

func (b *Background) unwanted(what purpose) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.wanted, what)
}

func (b *Background) done(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.workers[address]
	w.running--
	if address != "" {
		b.running--
	}
	if w.running == 0 && w.queues[ofPolicies].Len()+w.queues[ofSignals].Len() == 0 {
		delete(b.workers, address)
	}
	b.notify()
}

// notify wakes Start; b is locked.
func (b *Background) notify() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Turns are queues of namespaces that take turns. The zero value is empty. It is not safe for concurrent use.
type Turns[T any] struct {
	// namespaces with an element, the next one first.
	namespaces []string
	queues     map[string][]T
	count      int
}

// Add adds an element of a namespace.
func (t *Turns[T]) Add(namespace string, element T) {
	if t.queues == nil {
		t.queues = map[string][]T{}
	}
	if len(t.queues[namespace]) == 0 {
		t.namespaces = append(t.namespaces, namespace)
	}
	t.queues[namespace] = append(t.queues[namespace], element)
	t.count++
}

// Next removes the first element of the next namespace; false without one.
func (t *Turns[T]) Next() (element T, some bool) {
	if t.count == 0 {
		return element, false
	}
	namespace := t.namespaces[0]
	element = t.queues[namespace][0]
	t.count--
	t.namespaces, t.queues[namespace] = t.namespaces[1:], t.queues[namespace][1:]
	if len(t.queues[namespace]) > 0 {
		t.namespaces = append(t.namespaces, namespace)
	} else {
		delete(t.queues, namespace)
	}
	return element, true
}

// Len is the number of elements.
func (t *Turns[T]) Len() int { return t.count }
