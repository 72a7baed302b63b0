// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	defaultBackoff = time.Second
	maxBackoff     = 30 * time.Second
	// refreshEvery is the interval of Workload.Refresh. A kubelet takes up to a minute.
	refreshEvery = 2 * time.Second
)

// unit is the container of one pod, across its restarts.
type unit struct {
	pod      client.ObjectKey
	uid      types.UID
	spec     corev1.Container
	workload Workload
	before   <-chan struct{} // closed when the container of the previous pod of that name has ended; nil without one
	halt     chan struct{}
	done     chan struct{}

	// Guarded by Runner.mu.
	halted    bool
	grace     time.Duration
	container Container // of the last start; nil before the first
	state     state
}

// state is the container's part of a pod's status.
type state struct {
	// begun is when the pod was started, and since when the container runs.
	begun, since time.Time
	// ran is true once the container has run.
	ran, running, started, ready bool
	restarts                     int32
	// reason is why the container does not run.
	reason, message string
	// metrics is Container.MetricsURL, and address that of the pod.
	metrics, address string
}

// counts reports whether the history has the unit as ready.
func (u *unit) counts() bool { return u.state.ready && !u.halted }

// start runs a container for the pod until stop. Only values of the caller's ctx are used, not its end. A second call
// for the pod changes nothing. The container of a new pod of the same name starts after the end of the old one's.
func (r *Runner) start(ctx context.Context, key client.ObjectKey, pod *corev1.Pod, workload Workload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.units[key]
	if r.closed || old != nil && old.uid == pod.UID {
		return
	}
	u := &unit{
		pod: key, uid: pod.UID, workload: workload, halt: make(chan struct{}), done: make(chan struct{}),
		state: state{begun: time.Now(), reason: "ContainerCreating", address: workload.Address},
	}
	if len(pod.Spec.Containers) > 0 {
		u.spec = pod.Spec.Containers[0]
	}
	if old != nil {
		r.stopLocked(old, r.config.Grace)
		u.before = old.done
	}
	r.units[key] = u
	r.note(u, func(s *Sample) { s.Started++ })
	ctx = context.WithoutCancel(ctx)
	r.running.Go(func() { r.run(ctx, u) })
}

// look returns false if nothing was started for the pod with this uid.
func (r *Runner) look(pod client.ObjectKey, uid types.UID) (state, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.units[pod]
	if u == nil || u.uid != uid {
		return state{}, false
	}
	return u.state, true
}

// stop ends the container of a pod without waiting, and returns false if it has ended.
func (r *Runner) stop(pod client.ObjectKey, grace time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.units[pod]
	if u != nil {
		r.stopLocked(u, grace)
	}
	return u != nil
}

// StopOf ends the containers of an object's pods without waiting.
func (r *Runner) StopOf(object client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, u := range r.units {
		if u.workload.Of == object {
			r.stopLocked(u, r.config.Grace)
		}
	}
}

// close ends all containers, waits for their end, and prevents further starts.
func (r *Runner) close() {
	r.mu.Lock()
	if !r.closed {
		close(r.closing)
	}
	r.closed = true
	for _, u := range r.units {
		r.stopLocked(u, r.config.Grace)
	}
	r.mu.Unlock()
	r.running.Wait()
}

func (r *Runner) stopLocked(u *unit, grace time.Duration) {
	if u.halted {
		return
	}
	r.countLocked(u, func() { u.halted, u.grace = true, grace })
	close(u.halt)
}

// countLocked applies the change and adjusts the history.
func (r *Runner) countLocked(u *unit, change func()) {
	before := u.counts()
	change()
	if after := u.counts(); after != before {
		r.note(u, func(s *Sample) {
			if after {
				s.Ready++
			} else {
				s.Ready--
			}
		})
	}
}

// update changes the state of a unit and tells the controller.
func (r *Runner) update(u *unit, change func(*state)) {
	r.mu.Lock()
	before := u.state
	r.countLocked(u, func() { change(&u.state) })
	changed := u.state != before
	r.mu.Unlock()
	if changed {
		r.tell(u)
	}
}

// run is the lifetime of a unit: it restarts a container that ends by itself.
func (r *Runner) run(ctx context.Context, u *unit) {
	defer r.end(u)
	if u.before != nil {
		<-u.before
	}
	backoff, wait := r.config.Backoff, u.workload.Delay
	for {
		select {
		case <-u.halt:
			return
		case <-time.After(wait):
		}
		if r.once(ctx, u) {
			backoff = r.config.Backoff
		}
		wait, backoff = backoff+u.workload.Delay, min(2*backoff, maxBackoff)
	}
}

// once starts one container and returns after its end; true if it was ready.
func (r *Runner) once(ctx context.Context, u *unit) (ready bool) {
	select {
	case <-u.halt:
		return false
	default:
	}
	ctx, kill := context.WithCancel(ctx)
	defer kill()
	c, err := u.workload.Start(ctx, u.state.restarts) // nothing else writes them
	if err != nil {
		r.died(u, err)
		return false
	}
	r.mu.Lock()
	u.container, u.state.metrics = c, c.MetricsURL()
	r.mu.Unlock()
	var refresh <-chan time.Time
	if u.workload.Refresh != nil {
		ticker := time.NewTicker(refreshEvery)
		defer ticker.Stop()
		refresh = ticker.C
	}
	running := c.Ready()
	for {
		select {
		case <-u.halt:
			return r.stopContainer(ctx, u, c)
		case <-running:
			running = nil
			r.begin(ctx, u, c)
		case <-refresh:
			u.workload.Refresh(ctx)
		case <-c.Done():
			now, _ := r.look(u.pod, u.uid)
			r.died(u, cause(c))
			return now.ready
		}
	}
}

// begin is called when the container runs: without probes it is ready.
func (r *Runner) begin(ctx context.Context, u *unit, c Container) {
	p := newProbes(u.spec, time.Now())
	r.update(u, func(s *state) {
		s.ran, s.running, s.reason, s.message, s.since = true, true, "", "", time.Now()
		s.started, s.ready = p.startup.succeeds(), p.ready()
	})
	if p.none() {
		return
	}
	r.running.Go(func() {
		failed := p.run(ctx, u.workload.Address, func(now probes) {
			r.update(u, func(s *state) {
				if s.running {
					s.started, s.ready = now.startup.succeeds(), now.ready()
				}
			})
		})
		if !failed {
			return
		}
		ctx, cancel := context.WithTimeout(ctx, minGrace)
		defer cancel()
		_ = c.Stop(ctx) // it may be killed
	})
}

// stopContainer ends a container within the grace period.
func (r *Runner) stopContainer(ctx context.Context, u *unit, c Container) bool {
	ctx, cancel := context.WithTimeout(ctx, u.grace)
	defer cancel()
	_ = c.Stop(ctx) // it has ended all the same
	return false
}

// cause is the error with which a container ended, nil without one.
func cause(c Container) error {
	if told, ok := c.(interface{ Err() error }); ok {
		return told.Err()
	}
	return nil
}

func (r *Runner) died(u *unit, err error) {
	r.update(u, func(s *state) {
		s.restarts++
		s.running, s.started, s.ready, s.since = false, false, false, time.Now()
		s.reason, s.message = waitingFor(err)
	})
}

func (r *Runner) end(u *unit) {
	if u.workload.Remove != nil {
		u.workload.Remove()
	}
	r.mu.Lock()
	if r.units[u.pod] == u {
		delete(r.units, u.pod)
	}
	r.note(u, func(s *Sample) { s.Started-- })
	close(u.done)
	r.mu.Unlock()
	r.tell(u)
}
