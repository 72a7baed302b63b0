// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// DefaultWorkerUpdateInterval is the shortest time between two updates of one function. Each one restarts all its
	// instances and fetches its package on the worker. The worker starts nothing else meanwhile: about 10 s an instance if
	// its code swallows interrupts.
	DefaultWorkerUpdateInterval = time.Minute
	// workerLookupTTL is how long the state of a function is cached.
	workerLookupTTL = 30 * time.Second
	// updateWaits is how long an update may at least wait for its turn without being wanted again by a reconcile.
	updateWaits = 30 * time.Second
	// restartGrace is how long after an update all instances may be down before the controller assumes that a user stopped
	// them.
	restartGrace = time.Minute
)

// Worker reads what function workers run. Errors wrap the reasons of package backlog.
type Worker interface {
	Describe(ctx context.Context, component function.Component) (function.Description, error)
	Status(ctx context.Context, component function.Component) (function.Status, error)
}

// Workers caches the state of functions of a worker, and when the controller last updated them. It is safe for
// concurrent use.
type Workers struct {
	worker Worker
	// refused returns why the adapter's own credentials are not presented; empty when they are.
	refused   func(ref v1alpha1.PulsarFunctionRef) string
	consumers func(backlog.Subscription) (int, error)
	every     time.Duration
	now       func() time.Time
	known     *Lookups[function.Component, workerState]
	// updates are the times of the controller's last updates, and failures the errors of those that failed.
	updates  *backlog.Cache[function.Component, time.Time]
	failures *backlog.Cache[function.Component, error]
	// updating are those that are sent now, until the state after them is read.
	updating *backlog.Cache[function.Component, struct{}]
	// wanted are the updates that wait for their turn.
	wanted *backlog.Cache[function.Component, update]
	// background sends the requests for policies; nil if callers wait for them.
	background *Background
}

// update sends a request for a policy, and done gets its result.
type update struct {
	by        types.NamespacedName
	component function.Component
	send      func(context.Context) error
	done      func(error)
}

// ErrPending means that a function worker has not answered yet.
var ErrPending = errors.New("the function worker has not answered yet")

type workerState struct {
	// known reports whether config is the last good response.
	known  bool
	config function.Description
	// trouble is why the last request failed.
	trouble error
	// uncertain is why the state of the instances is unknown.
	uncertain error
	// idle means that no instance ran, stopped that none ran at the check before either, which excludes a restart.
	idle, stopped bool
}

// troubled reports whether the state is to be read again soon.
func (a workerState) troubled() bool {
	return a.trouble != nil || a.uncertain != nil || (a.idle && !a.stopped)
}

func newWorkers(config Config) *Workers {
	every, now := cmp.Or(config.WorkerUpdateInterval, DefaultWorkerUpdateInterval), config.Now
	waits := max(updateWaits, 2*config.PollInterval)
	return &Workers{
		worker: config.Worker, refused: workerRefusal(config), consumers: config.Consumers, every: every, now: now,
		known:    NewLookups[function.Component, workerState](now, lookupTTL),
		updates:  backlog.NewCache[function.Component, time.Time](max(every, restartGrace), maxLookups),
		failures: backlog.NewCache[function.Component, error](every+waits, maxLookups),
		updating: backlog.NewCache[function.Component, struct{}](updateWaits, maxLookups),
		wanted:   backlog.NewCache[function.Component, update](waits, maxLookups),

		background: config.Background,
	}
}

// find returns the last state of the component of a policy in the namespace, and reads it again when it is due, in the
// background unless the caller waits. It fails with ErrPending before the first answer, and for a caller that does not
// wait also during an update.
func (w *Workers) find(ctx context.Context, namespace string, component function.Component, waits bool) (
	workerState, error,
) {
	if _, updating := w.updating.Get(component, w.now()); updating && !waits {
		return workerState{}, ErrPending
	}
	if !w.known.valid(component) {
		background := w.background
		if waits {
			background = nil
		}
		background.run(ctx, namespace, purpose{component: component}, func(ctx context.Context) {
			w.refresh(ctx, component)
		})
	}
	state, seen := w.known.Last(component)
	if !seen {
		return workerState{}, ErrPending
	}
	return state, nil
}

// refresh reads the state of a component, unless an update begins meanwhile.
func (w *Workers) refresh(ctx context.Context, component function.Component) {
	before, _ := w.known.Last(component)
	updated, _ := w.updatedAt(component)
	at, valid := w.now(), workerLookupTTL
	after := w.read(ctx, component, before)
	switch last, _ := w.updatedAt(component); {
	case errors.Is(after.trouble, context.Canceled), !last.Equal(updated):
		return
	case after.troubled():
		valid = lookupRetryAfter
	}
	w.known.Put(component, after, at, valid)
}

func (w *Workers) read(ctx context.Context, component function.Component, before workerState) workerState {
	timed, cancel := context.WithTimeout(ctx, lookupTimeout) // for the configuration: Status has limits of its own
	config, err := w.worker.Describe(timed, component)
	cancel()
	switch {
	case errors.Is(err, backlog.ErrFunctionNotFound), errors.Is(err, backlog.ErrUnsupported):
		return workerState{trouble: err}
	case err != nil:
		before.trouble = err
		return before
	}
	consumers, err := w.consumers(config.Subscription)
	after := workerState{known: true, config: config}
	// The status of the instances is the worker's most expensive request. The controller sends it when nothing
	// consumes, because a user may have stopped the function. While the consumers are unknown, the controller decides
	// nothing, and it checks an earlier decision before it writes it.
	if runs := err == nil && consumers > 0; runs ||
		(!before.idle && (err != nil || w.updatedWithin(component, restartGrace))) {
		return after
	}
	status, err := w.worker.Status(ctx, component)
	if err != nil {
		after.uncertain, after.idle = err, before.idle
		return after
	}
	after.idle = status.Stopped()
	after.stopped = after.idle && before.idle
	return after
}

func (w *Workers) recordIdle(component function.Component) {
	if known, seen := w.known.Last(component); seen {
		known.idle = true
		w.known.Put(component, known, w.now(), lookupRetryAfter)
	}
}

// frozen is why the component must not be updated now; nil when it may be. The status shows it. Update checks
// again before the write, because the desired replicas may be older.
func (w *Workers) frozen(component function.Component, run workerState) *policy.Hold {
	switch trouble := cmp.Or(run.trouble, run.uncertain); {
	case trouble != nil:
		return &policy.Hold{
			Reason:  policy.HoldWorkerUnknown,
			Message: "the function worker does not report its state: " + trouble.Error(),
		}
	case run.idle:
		return &policy.Hold{
			Reason:  policy.HoldWorkerUnknown,
			Message: "no instance runs: the worker is starting it, or a user stopped it",
		}
	case w.updatedWithin(component, w.every):
		return &policy.Hold{
			Reason: policy.HoldWorkerUpdate,
			Message: fmt.Sprintf("the last update restarted all instances, and the next one is at least %s later "+
				"(--worker-update-interval, in adapter.extraArgs of the chart)", w.every),
		}
	default:
		return nil
	}
}

func (w *Workers) updatedWithin(component function.Component, period time.Duration) bool {
	at, ever := w.updatedAt(component)
	return ever && w.now().Sub(at) < period
}

// updatedAt is when the last update of a component began, if that is known.
func (w *Workers) updatedAt(component function.Component) (at time.Time, ever bool) {
	return w.updates.Get(component, w.now())
}

// recordUpdate records that an update begins, even if it fails, and has the state read again.
func (w *Workers) recordUpdate(component function.Component) {
	now := w.now()
	w.updates.Put(component, now, now)
	w.known.expire(component)
}

// Resume has the interval go on that another process began with about its last update of a component; a time before the
// interval has no effect.
func (w *Workers) Resume(component function.Component, at time.Time) {
	if _, known := w.updatedAt(component); !known {
		w.updates.Put(component, at, at)
	}
}

// Subscription reads from the function worker what the component consumes.
func (w *Workers) Subscription(ctx context.Context, component function.Component) (backlog.Subscription, error) {
	config, err := w.worker.Describe(ctx, component)
	return config.Subscription, err
}

// Update has a component updated by send for a policy, and then calls done with the result. It does nothing while the
// component must not change: its last update is too recent, or no instance runs. The last call before its turn is the
// one that counts, and none if that is too long ago.
func (w *Workers) Update(ctx context.Context, by types.NamespacedName, component function.Component,
	send func(context.Context) error, done func(error),
) {
	if w.updatedWithin(component, w.every) {
		return
	}
	w.wanted.Put(component, update{by, component, send, done}, w.now())
	w.background.run(ctx, by.Namespace, purpose{component, true}, func(ctx context.Context) {
		last, wanted := w.wanted.Get(component, w.now())
		if !wanted {
			return
		}
		w.wanted.Delete(component)
		begun, err := w.beginUpdate(ctx, component)
		if begun {
			w.updating.Put(component, struct{}{}, w.now())
			defer w.updating.Delete(component)
			err = last.send(ctx)
		}
		switch {
		case err != nil:
			w.failures.Put(component, err, w.now())
		case begun:
			w.failures.Delete(component)
			// No reconcile may decide by the number before. Another worker may answer with that for a moment.
			w.refresh(ctx, component)
			w.known.Invalidate(component)
		default:
			return
		}
		last.done(err)
	})
}

// Withdraw has an update for the policy that waits for its turn not sent: the policy is paused or deleted, or wants the
// present number.
func (w *Workers) Withdraw(by types.NamespacedName) {
	for _, waiting := range w.wanted.Values() {
		if waiting.by == by {
			w.wanted.Delete(waiting.component)
		}
	}
}

// UpdateFailed is why the last update of a component failed; nil if it did not, or after the time in which the next one
// has its turn.
func (w *Workers) UpdateFailed(component function.Component) error {
	err, _ := w.failures.Get(component, w.now())
	return err
}

// beginUpdate records that an update begins, even if it fails. An update starts only the new instances of a stopped
// component, and a user may have stopped it since its consumers were counted.
func (w *Workers) beginUpdate(ctx context.Context, component function.Component) (bool, error) {
	status, err := w.worker.Status(ctx, component)
	if err != nil {
		return false, fmt.Errorf("reading whether it runs: %w", err)
	}
	if status.Stopped() {
		w.recordIdle(component)
		return false, nil
	}
	w.recordUpdate(component)
	return true, nil
}

// ConsumerCount returns the last measured number of consumers of a subscription.
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
