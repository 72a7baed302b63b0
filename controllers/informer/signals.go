// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// How long what was asked for is remembered. A HorizontalPodAutoscaler asks every 15 s.
const (
	// trackFor is how long an object is polled after it was last asked for; renewed once trackAgain has passed, so that
	// most requests take no write lock of the store.
	trackFor   = 5 * time.Minute
	trackAgain = time.Minute
	// resolveAgain is how old the way from an object to its subscription may get, and resolveAfterError how long a look
	// that failed is left alone.
	resolveAgain      = 30 * time.Second
	resolveAfterError = 5 * time.Second
	// resolveTimeout bounds one way: reading a ConfigMap.
	resolveTimeout = 10 * time.Second
	// resolvers is how many ways are looked for at once, and maxUnresolved how many may wait.
	resolvers     = 4
	maxUnresolved = 1024
)

// Signals reads what was measured for policies, Functions, Sinks, Sources and StatefulSets of the function worker, for
// what a worker runs and for subscriptions by name, from the cache, on every replica. The first request starts the
// tracking: the first answers are backlog.ErrNoData. It is safe for concurrent use.
type Signals struct {
	config SignalsConfig
	queue  chan signalKey

	// mu guards known and what it points to, and topics, how many the subscriptions by name among them have.
	mu      sync.Mutex
	lookups map[signalKey]*lookup
	topics  int
}

// SignalsConfig is what NewSignals needs; all fields are required.
type SignalsConfig struct {
	Store    *backlog.Store
	Targets  *target.Targets
	Policies *Policies
	// Forget drops what was read for these and was not used lately.
	Forget func(now time.Time)
	// Now is the time, such as time.Now.
	Now func() time.Time
}

// signalKey is what a client requested: an object, what a function worker runs, or a subscription itself.
type signalKey struct {
	resource schema.GroupResource
	key      types.NamespacedName
	// component is zero for the others.
	component function.Component
	// subscription is a subscription as one string, to which no way has to be found; empty for the others.
	subscription string
}

// String names it for a person.
func (a signalKey) String() string {
	switch {
	case a.component != (function.Component{}):
		return string(a.component.Kind) + " " + a.component.FullName()
	case a.subscription != "":
		return a.subscription
	default:
		return a.resource.String() + " " + a.key.String()
	}
}

// owner is the name under which the interest stands in the store.
func (a signalKey) owner() string {
	switch {
	case a.component != (function.Component{}):
		return "asked/" + a.component.Workload()
	case a.subscription != "":
		return "asked/subscription/" + a.subscription
	default:
		return "asked/" + a.resource.String() + "/" + a.key.String()
	}
}

// lookup is the way from an object to its subscription.
type lookup struct {
	subscription backlog.Subscription
	// err is why there is none; backlog.ErrNoData until the first look.
	err error
	// pending says that it is queued or looked for; failing that the last look was in vain.
	pending, failing bool
	// bytesUsedAt is when the backlog in bytes was last asked for.
	bytesUsedAt time.Time
	// due is when to look again.
	usedAt, trackedAt, due time.Time
}

// wanted is the subscription with the details that clients request.
func (w *lookup) wanted(now time.Time) backlog.Subscription {
	subscription := w.subscription
	subscription.Bytes = !w.bytesUsedAt.IsZero() && now.Sub(w.bytesUsedAt) <= trackFor
	return subscription
}

// NewSignals checks the configuration. Start must run for answers to come.
func NewSignals(config SignalsConfig) (*Signals, error) {
	if config.Store == nil || config.Targets == nil || config.Policies == nil || config.Forget == nil ||
		config.Now == nil {
		return nil, errors.New("signals: Store, Targets, Policies, Forget and Now must be set")
	}
	return &Signals{config: config, queue: make(chan signalKey, maxUnresolved), lookups: map[signalKey]*lookup{}}, nil
}

// Read returns what is known of the object's subscription: of autoscalingpolicies.pulsar-autoscaler.io, functions,
// sinks and sources of compute.functionmesh.io, or statefulsets.apps. Of the details Bytes is understood: it is
// measured from the first request on, until requests stop. An object that does not exist is an API
// server's NotFound; any other error says why the reading is unknown, in words for the user, and wraps a reason of
// package backlog where there is one.
func (s *Signals) Read(resource schema.GroupResource, key types.NamespacedName, detail backlog.Detail,
	now time.Time,
) (backlog.Reading, error) {
	subscription, err := s.subscription(signalKey{resource: resource, key: key}, detail, now)
	if err != nil {
		return backlog.Reading{}, err
	}
	return s.config.Store.Read(subscription, now)
}

// subscription returns what is known of the way, renews the interest and orders a new look when it is due.
func (s *Signals) subscription(a signalKey, detail backlog.Detail, now time.Time) (backlog.Subscription, error) {
	found, renew := s.use(a, detail, now)
	if found == nil {
		if err := s.exists(a); err != nil {
			return backlog.Subscription{}, err
		}
		return backlog.Subscription{}, s.begin(a, detail, now)
	}
	if renew {
		s.config.Store.TrackUntil(a.owner(), found.wanted(now), now.Add(trackFor))
	}
	return found.wanted(now), found.err
}

// use returns a copy of the lookup, or nil on the first request, and whether its interest is to be renewed.
func (s *Signals) use(a signalKey, detail backlog.Detail, now time.Time) (found *lookup, renew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.lookups[a]
	if w == nil {
		return nil, false
	}
	w.usedAt = now
	bytesBefore := w.wanted(w.trackedAt).Bytes
	if detail.Has(backlog.Bytes) {
		w.bytesUsedAt = now
	}
	if !w.pending && !now.Before(w.due) && a.subscription == "" {
		w.pending = enqueue(s.queue, a)
	}
	news := now.Sub(w.trackedAt) >= trackAgain || w.wanted(now).Bytes != bytesBefore
	if renew = w.err == nil && news; renew {
		w.trackedAt = now
	}
	answer := *w
	return &answer, renew
}

// begin begins to look for the way to an object that exists.
func (s *Signals) begin(a signalKey, detail backlog.Detail, now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := fmt.Errorf("%w: first question about %s, its subscription is being looked up", backlog.ErrNoData, a)
	if s.lookups[a] == nil && enqueue(s.queue, a) {
		w := &lookup{err: err, pending: true, usedAt: now}
		if detail.Has(backlog.Bytes) {
			w.bytesUsedAt = now
		}
		s.lookups[a] = w
	}
	return err
}

// enqueue never blocks; when the queue is full, the next question tries again.
func enqueue(queue chan<- signalKey, a signalKey) bool {
	select {
	case queue <- a:
		return true
	default:
		return false
	}
}

// exists fails unless the object is in memory.
func (s *Signals) exists(a signalKey) error {
	switch kind := cluster.KindFor(a.resource); {
	case a.component != (function.Component{}):
		return s.config.Targets.Workers.Enabled()
	case a.resource == v1alpha1.GroupResource():
		_, err := s.config.Policies.Policy(a.key)
		return err
	case kind != "":
		return s.config.Targets.Reader.Measurable(kind, a.key)
	default:
		return fmt.Errorf("%w: signals are served for %s, functions, sinks and sources of %s, and %s, not for %s",
			backlog.ErrNotTracked,
			v1alpha1.GroupResource(), cluster.FunctionMeshGroup, cluster.ResourceFor(cluster.KindStatefulSet), a.resource)
	}
}

// NeedLeaderElection is false: every replica answers.
func (s *Signals) NeedLeaderElection() bool { return false }

// Start looks for ways until the context ends, and returns nil then.
func (s *Signals) Start(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for range resolvers {
		group.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case a := <-s.queue:
					s.resolve(ctx, a)
				}
			}
		})
	}
	group.Go(func() error {
		ticker := time.NewTicker(trackAgain)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
				now := s.config.Now()
				s.expire(now)
				s.config.Forget(now)
			}
		}
	})
	return group.Wait()
}

// expire drops what no client requested lately; the store expires its own entries.
func (s *Signals) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.lookups, func(a signalKey, w *lookup) bool {
		old := now.Sub(w.usedAt) > trackFor
		if old && a.subscription != "" {
			s.topics -= len(w.subscription.Topics)
		}
		return old
	})
}
