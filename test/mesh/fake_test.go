// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"errors"
	"sync"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// fakeRunner starts replicas that are Ready at once, and that end only when stopped.
type fakeRunner struct {
	mu  sync.Mutex // guards all
	all []*fakeReplica
}

func (f *fakeRunner) Start(_ context.Context, in replica.Instance) (replica.Replica, error) {
	r := &fakeReplica{in: in, ready: make(chan struct{}), done: make(chan struct{})}
	close(r.ready)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, r)
	return r, nil
}

// of returns all replicas ever started of a function, or of all functions for an empty name, in the order of their
// starts.
func (f *fakeRunner) of(name string) []*fakeReplica {
	f.mu.Lock()
	defer f.mu.Unlock()
	var of []*fakeReplica
	for _, r := range f.all {
		if name == "" || r.in.Name == name {
			of = append(of, r)
		}
	}
	return of
}

// alive returns the ordinals of a function that have not ended.
func (f *fakeRunner) alive(name string) []int {
	ordinals := []int{}
	for _, r := range f.of(name) {
		select {
		case <-r.done:
		default:
			ordinals = append(ordinals, r.in.ID)
		}
	}
	return ordinals
}

type fakeReplica struct {
	in          replica.Instance
	ready, done chan struct{}

	mu      sync.Mutex // guards stopped and the closing of done
	stopped bool
}

var errCrashed = errors.New("crashed")

func (r *fakeReplica) Ready() <-chan struct{} { return r.ready }
func (r *fakeReplica) Done() <-chan struct{}  { return r.done }
func (r *fakeReplica) Err() error             { return errCrashed }

func (r *fakeReplica) Stop(context.Context) error {
	r.end(true)
	return nil
}

func (r *fakeReplica) Kill() error {
	r.end(false)
	return nil
}

func (r *fakeReplica) end(stopped bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.done:
	default:
		r.stopped = stopped
		close(r.done)
	}
}

// gracefully reports whether Stop ended the replica.
func (r *fakeReplica) gracefully() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stopped
}

func (r *fakeReplica) MetricsURL() string { return "" }
