// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// DefaultWorkerUpdateInterval is the least time between two changes of one function: each one restarts all its
	// instances, fetches its package on the worker, and takes about 10 s an instance where its code swallows interrupts,
	// during which the worker starts nothing else.
	DefaultWorkerUpdateInterval = time.Minute
	// workerLookupTTL is how old the answer of a function worker may be. The controller serves it from the cache.
	workerLookupTTL = 30 * time.Second
	// restartGrace is how long after our change no instance may run before the controller takes it for stopped by a user.
	restartGrace = time.Minute
)

// Worker reads what function workers run. Errors wrap the reasons of package backlog.
type Worker interface {
	Describe(ctx context.Context, component function.Component) (function.Description, error)
	Status(ctx context.Context, component function.Component) (function.Status, error)
}

// Workers remembers what function workers said, and when they were told to change something. It is safe for concurrent
// use.
type Workers struct {
	worker Worker
	// refused is why the adapter's own credentials are not shown; nil when they are.
	refused         func(ref v1alpha1.PulsarFunctionRef) string
	instanceMetrics InstanceMetrics
	consumers       func(backlog.Subscription) (int, error)
	every           time.Duration
	now             func() time.Time
	known           *Lookups[function.Component, workerState]
	// updates are the last changes of ours.
	updates *Lookups[function.Component, time.Time]
}

// workerState is what a worker said of a component.
type workerState struct {
	// known says that config is the last good answer.
	known  bool
	config function.Description
	// trouble is why there was none the last time.
	trouble error
	// unsure is why it is not known how the instances do.
	unsure error
	// unseen says that it was not known what consumes.
	unseen bool
	// idle says that no instance ran, stopped that none ran the time before either: that a restart is not in between.
	idle, stopped bool
}

// troubled says to ask again soon.
func (a workerState) troubled() bool {
	return a.trouble != nil || a.unsure != nil || (a.idle && !a.stopped)
}

func newWorkers(config Config) (*Workers, error) {
	every, now := cmp.Or(config.WorkerUpdateInterval, DefaultWorkerUpdateInterval), config.Now
	switch {
	case every < time.Second || every > time.Hour:
		return nil, fmt.Errorf("WorkerUpdateInterval is %s, must be from 1s to 1h", every)
	case config.Worker != nil && config.Consumers == nil:
		return nil, errors.New("a Worker needs Consumers")
	}
	refused, err := workerRefusal(config)
	if err != nil {
		return nil, err
	}
	w := &Workers{
		worker: config.Worker, refused: refused, instanceMetrics: config.InstanceMetrics,
		consumers: config.Consumers, every: every, now: now,
		known: NewLookups[function.Component, workerState](now), updates: NewLookups[function.Component, time.Time](now),
	}
	w.known.ttl = workerLookupTTL
	return w, nil
}

// find returns what the worker says, or what it said last with the trouble since. An error is that of a context that
// ended.
func (w *Workers) find(ctx context.Context, component function.Component) (workerState, error) {
	before, _ := w.known.Last(component)
	return w.known.Find(ctx, component, func(ctx context.Context) (workerState, bool, error) {
		after := w.read(ctx, component, before)
		if errors.Is(after.trouble, context.Canceled) {
			return before, false, after.trouble
		}
		return after, after.troubled(), nil
	})
}

func (w *Workers) read(ctx context.Context, component function.Component, before workerState) workerState {
	config, err := w.worker.Describe(ctx, component)
	switch {
	case errors.Is(err, backlog.ErrFunctionNotFound), errors.Is(err, backlog.ErrUnsupported):
		return workerState{trouble: err}
	case err != nil:
		before.trouble = err
		return before
	}
	consumers, err := w.consumers(config.Subscription)
	after := workerState{known: true, config: config, unseen: err != nil}
	// The status of the instances is the worker's most expensive request. The controller sends it when nothing
	// consumes, because a user may have stopped the function. While the consumers are unknown, the controller decides
	// nothing, and it checks an earlier decision before it writes it.
	if runs := err == nil && consumers > 0; runs ||
		(!before.idle && (err != nil || w.updatedWithin(component, restartGrace))) {
		return after
	}
	status, err := w.worker.Status(ctx, component)
	if err != nil {
		after.unsure, after.idle = err, before.idle
		return after
	}
	after.idle = status.Stopped()
	after.stopped = after.idle && before.idle
	return after
}

// noteIdle notes that no instance runs.
func (w *Workers) noteIdle(component function.Component) {
	if known, seen := w.known.Last(component); seen {
		known.idle = true
		w.known.Put(component, known, w.now(), lookupRetryAfter)
	}
}

// frozen is why the component has to be left as it is for now; nil when it may be changed. What holds a decision is in
// the status; the scaler asks again, for a HorizontalPodAutoscaler may want what was decided before.
func (w *Workers) frozen(component function.Component, run workerState) *policy.Hold {
	switch trouble := cmp.Or(run.trouble, run.unsure); {
	case trouble != nil:
		return &policy.Hold{
			Reason:  policy.HoldWorkerUnknown,
			Message: "the function worker does not say how it runs: " + trouble.Error(),
		}
	case run.idle:
		return &policy.Hold{
			Reason:  policy.HoldWorkerUnknown,
			Message: "no instance runs: it is being started, or was stopped",
		}
	case w.updatedWithin(component, w.every):
		return &policy.Hold{
			Reason: policy.HoldWorkerUpdate,
			Message: fmt.Sprintf("the last change restarted all instances, %s are left between two "+
				"(--worker-update-interval)", w.every),
		}
	default:
		return nil
	}
}

func (w *Workers) updatedWithin(component function.Component, time time.Duration) bool {
	at, wrote := w.updates.Last(component)
	return wrote && w.now().Sub(at) < time
}

// noteUpdate notes that the component is about to be changed, whatever comes of it, and has it read again.
func (w *Workers) noteUpdate(component function.Component) {
	now := w.now()
	w.updates.Put(component, now, now, w.every)
	w.known.expire(component)
}

func (w *Workers) forget(now time.Time) {
	w.known.Forget(now)
	w.updates.Forget(now)
}

// noWorkers is why nothing is known of what function workers run.
const noWorkers = "this process does not ask function workers"

func (w *Workers) enabled() bool { return w.worker != nil }

// Enabled fails where function workers are not asked.
func (w *Workers) Enabled() error {
	if !w.enabled() {
		return fmt.Errorf("%w: %s", backlog.ErrUnsupported, noWorkers)
	}
	return nil
}

// Subscription asks the function worker what the component consumes.
func (w *Workers) Subscription(ctx context.Context, component function.Component) (backlog.Subscription, error) {
	config, err := w.worker.Describe(ctx, component)
	if err != nil {
		return backlog.Subscription{}, err
	}
	if w.instanceMetrics != PodInstanceMetrics {
		config.Subscription.Workload = ""
	}
	return config.Subscription, nil
}

// BeginUpdate notes that the component is about to be changed, whatever comes of it, and has it read again. It returns
// false while the component has to be left alone: it was changed a moment ago, or does not run. A stopped one would
// have its new instances started and its old ones not, and it may have been stopped since its consumers were counted.
func (w *Workers) BeginUpdate(ctx context.Context, component function.Component) (bool, error) {
	if w.updatedWithin(component, w.every) {
		return false, nil
	}
	status, err := w.worker.Status(ctx, component)
	if err != nil {
		return false, fmt.Errorf("reading whether it runs: %w", err)
	}
	if status.Stopped() {
		w.noteIdle(component)
		return false, nil
	}
	w.noteUpdate(component)
	return true, nil
}

// ConsumerCount counts the consumers of a subscription, as were measured last.
func ConsumerCount(store *backlog.Store, now func() time.Time) func(backlog.Subscription) (int, error) {
	return func(subscription backlog.Subscription) (int, error) {
		reading, err := store.Read(subscription, now())
		if err != nil {
			return 0, err
		}
		count, err := reading.Consumers.Value()
		return int(count), err
	}
}
