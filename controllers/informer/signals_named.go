// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
)

// maxNamed bounds the keys. Kubernetes bounds the objects, but a client may request any number of names, and each would
// be polled.
const maxNamed = 20_000

// maxShare is the share that one namespace may have, so that its triggers leave room for those of others.
const maxShare = 4

// requests are how many keys each namespace requests by name.
type requests map[string]int

func (r requests) count(k signalKey, by int) {
	if !k.isNamed() {
		return
	}
	if r[k.key.Namespace] += by; r[k.key.Namespace] == 0 {
		delete(r, k.key.Namespace)
	}
}

// named is the key of what a namespace requests by name.
func named(namespace string, component function.Component) signalKey {
	return signalKey{key: types.NamespacedName{Namespace: namespace}, component: component}
}

// ReadComponent returns the reading of a function of a worker, as Read does for an object. The worker's own reason is
// the error: backlog.ErrFunctionNotFound, ErrNoWorker, ErrForbidden and so on. After a good response the last
// subscription stays in use while the worker fails.
func (s *Signals) ReadComponent(namespace string, component function.Component, now time.Time) (
	backlog.Reading, error,
) {
	return s.read(named(namespace, component), backlog.Slim, now)
}

// ReadSubscription returns the reading of a subscription. The first request starts the tracking and gets
// backlog.ErrNoData. Tracking ends a few minutes after the last request.
func (s *Signals) ReadSubscription(namespace string, subscription backlog.Subscription, now time.Time) (
	backlog.Reading, error,
) {
	k := named(namespace, function.Component{})
	k.subscription = fmt.Sprintf("%s on %q at %s %q", subscription.Name,
		slices.Concat(subscription.Topics, subscription.Patterns),
		subscription.Cluster.AdminURL, subscription.Cluster.Access)
	found, renew := s.use(k, backlog.Slim, now)
	if found == nil {
		if err := s.begin(k, &lookup{subscription: subscription, usedAt: now, trackedAt: now}); err != nil {
			return backlog.Reading{}, err
		}
		renew = true
	}
	for {
		if renew {
			s.config.Store.TrackUntil(k.owner(), subscription, now.Add(trackFor))
		}
		reading, err := s.config.Store.Read(subscription, now)
		if renew || !errors.Is(err, backlog.ErrNotTracked) {
			return reading, err
		}
		renew = true // a concurrent first request has not begun the tracking yet
	}
}

// begin adds the lookup of a key, and queues it if it is pending. It refuses a name when there are too many; the store
// bounds their topics.
func (s *Signals) begin(k signalKey, first *lookup) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch keys := s.named[k.key.Namespace]; {
	case s.lookups[k] != nil:
		return nil // a concurrent first request was faster
	case k.isNamed() && keys >= maxNamed/maxShare:
		return backlog.Errorf(backlog.ErrNotTracked,
			"namespace %s requests %d names, and its limit is %d: remove unused triggers", k.key.Namespace, keys,
			maxNamed/maxShare)
	case k.isNamed() && len(s.lookups) >= maxNamed:
		return backlog.Errorf(backlog.ErrNotTracked,
			"%s exceeds the limit of %d that clients may request in %s: remove unused triggers", k,
			maxNamed, trackFor)
	}
	s.lookups[k] = first
	s.named.count(k, 1)
	if first.pending {
		s.enqueue(k)
	}
	return nil
}

// isNamed reports whether the key is not an object in Kubernetes.
func (k signalKey) isNamed() bool {
	return k.subscription != "" || k.component != (function.Component{})
}

// isFinal reports whether the error is a result, and not a failure to get one.
func (k signalKey) isFinal(err error) bool {
	if k.component != (function.Component{}) {
		return errors.Is(err, backlog.ErrFunctionNotFound) || errors.Is(err, backlog.ErrUnsupported)
	}
	return target.IsInvalid(err)
}
