// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// How long a request for signals counts. The HPA requests them every 15 s.
const (
	// trackFor is how long a subscription is polled after the last request. The tracking is renewed every trackAgain, so
	// that most requests take no write lock of the store.
	trackFor   = 5 * time.Minute
	trackAgain = time.Minute
	// resolveAgain is the time between two resolutions of a key, and resolveAfterError that after a failure.
	resolveAgain      = 30 * time.Second
	resolveAfterError = 5 * time.Second
	// resolveTimeout bounds one resolution: reading a ConfigMap, or a request to a function worker.
	resolveTimeout = 10 * time.Second
)

// Signals reads the signals of policies, Functions, Sinks, Sources, StatefulSets of the function worker, functions of a
// worker and subscriptions, from the cache, on every replica. The first request starts the tracking: the first
// responses are backlog.ErrNoData. It is safe for concurrent use.
type Signals struct {
	config   Config
	targets  *target.Targets
	policies *Policies
	// enqueue has a key resolved by the Background of the targets. mu is held.
	enqueue func(signalKey)

	// mu guards lookups and what it points to, and named, the requests for functions of workers and subscriptions.
	mu      sync.Mutex
	lookups map[signalKey]*lookup
	named   requests
}

// signalKey is what a client requests: an object, a function of a worker, or a subscription itself. Of the last two,
// key has only the namespace of the request.
type signalKey struct {
	resource schema.GroupResource
	key      types.NamespacedName
	// component is zero for other keys.
	component function.Component
	// subscription is a subscription as one string, which needs no resolution; empty for other keys.
	subscription string
}

// String names the key in messages.
func (k signalKey) String() string {
	switch {
	case k.component != (function.Component{}):
		return k.component.String()
	case k.subscription != "":
		return k.subscription
	default:
		return k.resource.String() + " " + k.key.String()
	}
}

func (k signalKey) owner() string {
	switch {
	case k.component != (function.Component{}):
		c := k.component
		return backlog.Owner(k.key.Namespace, fmt.Sprintf("signals/%s %v %s", c, c.Cluster, c.WorkerURL))
	case k.subscription != "":
		return backlog.Owner(k.key.Namespace, "signals/subscription/"+k.subscription)
	default:
		return backlog.Owner(k.key.Namespace, "signals/"+k.resource.String()+"/"+k.key.Name)
	}
}

// lookup is the subscription of a key.
type lookup struct {
	subscription backlog.Subscription
	// err is why there is none; backlog.ErrNoData until the first resolution.
	err error
	// pending means that the key is queued or being resolved, once: such a lookup does not expire. failing means that the
	// last resolution failed.
	pending, failing bool
	// bytesUsedAt is when a client last requested the backlog in bytes.
	bytesUsedAt time.Time
	// due is when to resolve the key again.
	usedAt, trackedAt, due time.Time
}

// wanted is the subscription with the details that clients request.
func (l *lookup) wanted(now time.Time) backlog.Subscription {
	subscription := l.subscription
	subscription.Bytes = !l.bytesUsedAt.IsZero() && now.Sub(l.bytesUsedAt) <= trackFor
	return subscription
}

// newSignals returns Signals that resolve keys while the Background of the targets runs.
func newSignals(config Config, targets *target.Targets, policies *Policies) *Signals {
	s := &Signals{
		config: config, targets: targets, policies: policies, lookups: map[signalKey]*lookup{}, named: requests{},
	}
	s.enqueue = func(k signalKey) {
		targets.Background.Add(k.key.Namespace, "", func(ctx context.Context) { s.resolve(ctx, k) })
	}
	return s
}

// Read returns the reading of an object: a policy, a Function, Sink or Source, or a StatefulSet. detail may add Bytes,
// which is measured while clients request it. A missing object is an API server's NotFound. Any other error is why the
// reading is unknown; most wrap a reason of package backlog.
func (s *Signals) Read(resource schema.GroupResource, key types.NamespacedName, detail backlog.Detail,
	now time.Time,
) (backlog.Reading, error) {
	return s.read(signalKey{resource: resource, key: key}, detail, now)
}

func (s *Signals) read(k signalKey, detail backlog.Detail, now time.Time) (backlog.Reading, error) {
	subscription, err := s.subscription(k, detail, now)
	if err != nil {
		return backlog.Reading{}, err
	}
	return s.config.Store.Read(subscription, now)
}

// subscription returns the resolved subscription of a key. It renews the tracking, and queues the key when it is due.
func (s *Signals) subscription(k signalKey, detail backlog.Detail, now time.Time) (backlog.Subscription, error) {
	found, renew := s.use(k, detail, now)
	if found == nil {
		if err := s.exists(k); err != nil {
			return backlog.Subscription{}, err
		}
		unresolved := fmt.Errorf("%w: first request for %s, its subscription is being resolved", backlog.ErrNoData, k)
		first := &lookup{err: unresolved, pending: true, usedAt: now}
		if detail.Has(backlog.Bytes) {
			first.bytesUsedAt = now
		}
		return backlog.Subscription{}, cmp.Or(s.begin(k, first), unresolved)
	}
	if renew {
		s.config.Store.TrackUntil(k.owner(), found.wanted(now), now.Add(trackFor))
	}
	return found.wanted(now), found.err
}

// use returns a copy of the lookup, or nil at the first request, and whether to renew its tracking.
func (s *Signals) use(k signalKey, detail backlog.Detail, now time.Time) (found *lookup, renew bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lookups[k]
	if l == nil {
		return nil, false
	}
	l.usedAt = now
	bytesBefore := l.wanted(l.trackedAt).Bytes
	if detail.Has(backlog.Bytes) {
		l.bytesUsedAt = now
	}
	if !l.pending && !now.Before(l.due) && k.subscription == "" {
		l.pending = true
		s.enqueue(k)
	}
	changed := now.Sub(l.trackedAt) >= trackAgain || l.wanted(now).Bytes != bytesBefore
	if renew = l.err == nil && changed; renew {
		l.trackedAt = now
	}
	found = new(lookup)
	*found = *l
	return found, renew
}

// exists fails unless the object is in the cache.
func (s *Signals) exists(k signalKey) error {
	switch kind := cluster.KindFor(k.resource); {
	case k.component != (function.Component{}):
		return nil
	case k.resource == v1alpha1.GroupResource():
		_, err := s.policies.Policy(k.key)
		return err
	case kind != "":
		return s.targets.Reader.Measurable(kind, k.key)
	default:
		return fmt.Errorf("%w: signals are served for %s, functions, sinks and sources of %s, and %s, not for %s",
			backlog.ErrNotTracked, v1alpha1.GroupResource(), cluster.FunctionMeshGroup,
			cluster.ResourceFor(cluster.KindStatefulSet), k.resource)
	}
}

// NeedLeaderElection is false: every replica serves signals.
func (s *Signals) NeedLeaderElection() bool { return false }

// Start drops what is not requested any more until the context ends, and returns nil then.
func (s *Signals) Start(ctx context.Context) error {
	_ = wait.PollUntilContextCancel(ctx, trackAgain, false, func(context.Context) (bool, error) {
		now := s.config.Clock()
		s.expire(now)
		s.targets.Forget(now)
		return false, nil
	}) // fails when the context ends
	return nil
}

// expire drops keys that no client has requested lately; the store expires its own entries.
func (s *Signals) expire(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.lookups, func(k signalKey, l *lookup) bool {
		old := !l.pending && now.Sub(l.usedAt) > trackFor
		if old {
			s.named.count(k, -1)
		}
		return old
	})
}
