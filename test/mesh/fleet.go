// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// fleet runs one replica per pod and records the history of each Function.
type fleet struct {
	runner         replica.Runner
	log            logr.Logger
	backoff, grace time.Duration
	// changed gets pods when their replica becomes ready or ends.
	changed chan<- event.GenericEvent

	mu      sync.Mutex // guards the fields below and some fields of a unit
	closed  bool
	units   map[client.ObjectKey]*unit
	ledgers map[client.ObjectKey]*ledger
	running sync.WaitGroup
}

// unit is the replica of one pod, across its restarts.
type unit struct {
	pod, function client.ObjectKey
	uid           types.UID
	instance      replica.Instance
	before        <-chan struct{} // closed when the replica of the previous pod of that name has ended; nil without one
	halt          chan struct{}
	done          chan struct{}

	// Guarded by fleet.mu.
	halted   bool
	ready    bool
	since    time.Time
	restarts int32
	metrics  string
}

// state is the replica's part of a pod's status.
type state struct {
	ready    bool
	since    time.Time
	restarts int32
	// metrics is the URL of the replica's metrics; empty before its start.
	metrics string
}

func (f *fleet) ledger(function client.ObjectKey) *ledger {
	l := f.ledgers[function]
	if l == nil {
		l = &ledger{}
		f.ledgers[function] = l
	}
	return l
}

func (f *fleet) desire(function client.ObjectKey, replicas int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ledger(function).note(time.Now(), func(s *Sample) { s.Desired = replicas })
}

// start runs a replica for the pod until stop. Only values of the caller's ctx are used, not its end. A second call for
// the pod changes nothing. The replica of a new pod of the same name starts after the end of the old one's.
func (f *fleet) start(ctx context.Context, pod, function client.ObjectKey, uid types.UID, in replica.Instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	old := f.units[pod]
	if f.closed || old != nil && old.uid == uid {
		return
	}
	u := &unit{
		pod: pod, function: function, uid: uid, instance: in,
		halt: make(chan struct{}), done: make(chan struct{}), since: time.Now(),
	}
	if old != nil {
		f.stopLocked(old)
		u.before = old.done
	}
	f.units[pod] = u
	f.ledger(function).note(u.since, func(s *Sample) { s.Started++ })
	ctx = context.WithoutCancel(ctx)
	f.running.Go(func() { f.run(ctx, u) })
}

// look returns false if no replica was started for the pod with this uid.
func (f *fleet) look(pod client.ObjectKey, uid types.UID) (state, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.units[pod]
	if u == nil || u.uid != uid {
		return state{}, false
	}
	return state{ready: u.ready, since: u.since, restarts: u.restarts, metrics: u.metrics}, true
}

// stop stops the replica of a pod and does not wait.
func (f *fleet) stop(pod client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.units[pod]; u != nil {
		f.stopLocked(u)
	}
}

// stopFunction stops all replicas of a Function and does not wait.
func (f *fleet) stopFunction(function client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.units {
		if u.function == function {
			f.stopLocked(u)
		}
	}
}

// close stops all replicas, waits for their end, and prevents further starts.
func (f *fleet) close() {
	f.mu.Lock()
	f.closed = true
	for _, u := range f.units {
		f.stopLocked(u)
	}
	f.mu.Unlock()
	f.running.Wait()
}

func (f *fleet) stopLocked(u *unit) {
	if u.halted {
		return
	}
	u.halted = true
	f.readyLocked(u, false)
	close(u.halt)
}

// readyLocked sets the flag and adjusts the count.
func (f *fleet) readyLocked(u *unit, ready bool) {
	if u.ready == ready || ready && u.halted {
		return
	}
	u.ready, u.since = ready, time.Now()
	f.ledger(u.function).note(u.since, func(s *Sample) {
		if ready {
			s.Ready++
		} else {
			s.Ready--
		}
	})
}

// run is the lifetime of a unit: it restarts a replica that ends by itself.
func (f *fleet) run(ctx context.Context, u *unit) {
	defer f.end(u)
	if u.before != nil {
		<-u.before
	}
	wait := f.backoff
	for {
		if f.once(ctx, u) {
			wait = f.backoff
		}
		select {
		case <-u.halt:
			return
		case <-time.After(wait):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// once starts one replica and returns after its end; true if it was ready.
func (f *fleet) once(ctx context.Context, u *unit) (ready bool) {
	select {
	case <-u.halt:
		return false
	default:
	}
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	r, err := f.runner.Start(ctx, u.instance)
	if err != nil {
		f.died(u, err)
		return false
	}
	f.mu.Lock()
	u.metrics = r.MetricsURL()
	f.mu.Unlock()
	consuming := r.Ready()
	for {
		select {
		case <-u.halt:
			f.stopReplica(ctx, u, r)
			return ready
		case <-consuming:
			ready, consuming = true, nil
			f.mark(u, true)
		case <-r.Done():
			f.died(u, cause(r))
			return ready
		}
	}
}

func (f *fleet) stopReplica(ctx context.Context, u *unit, r replica.Replica) {
	ctx, cancel := context.WithTimeout(ctx, f.grace)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		f.log.Error(err, "stopping a replica", "pod", u.pod)
	}
}

// cause is the error with which a replica ended, nil without one.
func cause(r replica.Replica) error {
	if told, ok := r.(interface{ Err() error }); ok {
		return told.Err()
	}
	return nil
}

func (f *fleet) died(u *unit, err error) {
	f.log.Info("replica ended by itself", "pod", u.pod, "reason", err)
	f.mu.Lock()
	u.restarts++
	f.readyLocked(u, false)
	f.mu.Unlock()
	f.tell(u)
}

// tell sends the event of a unit to the reader. It gives up when the unit is stopped: the reader may have ended.
func (f *fleet) tell(u *unit) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: u.pod.Namespace, Name: u.pod.Name}}
	select {
	case f.changed <- event.GenericEvent{Object: pod}:
	case <-u.halt:
	}
}

func (f *fleet) mark(u *unit, ready bool) {
	f.mu.Lock()
	f.readyLocked(u, ready)
	f.mu.Unlock()
	f.tell(u)
}

func (f *fleet) end(u *unit) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.units[u.pod] == u {
		delete(f.units, u.pod)
	}
	f.ledger(u.function).note(time.Now(), func(s *Sample) { s.Started-- })
	close(u.done)
}

func (f *fleet) replicaTime(function client.ObjectKey, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ledger(function).replicaTime(now)
}

func (f *fleet) last(function client.ObjectKey) Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ledger(function).last()
}

func (f *fleet) timeline(function client.ObjectKey) []Sample {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ledger(function).timeline()
}
