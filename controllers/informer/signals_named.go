// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// maxNamed bounds what is known when something is asked for by name. Objects are as many as Kubernetes has, but who
// asks by name may make up as many as he likes, and each would be polled.
const maxNamed = 20_000

// maxNamedTopics bounds the topics of subscriptions by name, of which one may have a hundred.
const maxNamedTopics = 50_000

// ReadComponent returns what is known of the subscription of what a function worker runs, as Read does for an object.
// The adapter asks the worker in the background, and again while clients ask. The first answer is backlog.ErrNoData.
// What the worker says of it is the error: backlog.ErrFunctionNotFound, ErrNoWorker, ErrForbidden and so on. Trouble
// after a good answer leaves that in force.
func (s *Signals) ReadComponent(component function.Component, now time.Time) (backlog.Reading, error) {
	a := signalKey{component: component}
	if err := s.bounded(a, 0); err != nil {
		return backlog.Reading{}, err
	}
	subscription, err := s.subscription(a, backlog.Slim, now)
	if err != nil {
		return backlog.Reading{}, err
	}
	return s.config.Store.Read(subscription, now)
}

// ReadSubscription returns what is known of the subscription. Tracking starts with the first request, which gets
// backlog.ErrNoData. It ends a few minutes after the last request.
func (s *Signals) ReadSubscription(subscription backlog.Subscription, now time.Time) (backlog.Reading, error) {
	a := signalKey{subscription: fmt.Sprintf("%s on %q at %s %q", subscription.Name,
		slices.Concat(subscription.Topics, subscription.Patterns),
		subscription.Cluster.AdminURL, subscription.Cluster.Access)}
	if err := s.bounded(a, len(subscription.Topics)); err != nil {
		return backlog.Reading{}, err
	}
	renew := s.renew(a, subscription, now)
	for {
		if renew {
			s.config.Store.TrackUntil(a.owner(), subscription, now.Add(trackFor))
		}
		reading, err := s.config.Store.Read(subscription, now)
		if renew || !errors.Is(err, backlog.ErrNotTracked) {
			return reading, err
		}
		renew = true // who asked first at the same time is not there yet
	}
}

// bounded refuses what is new when there is a lot already.
func (s *Signals) bounded(a signalKey, topics int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.lookups[a] != nil:
		return nil
	case s.topics+topics > maxNamedTopics:
		return backlog.Because(backlog.ErrNotTracked,
			"%d topics were asked for by name in the last %s, and %d are the most: remove unused triggers",
			s.topics, trackFor, maxNamedTopics)
	case len(s.lookups) >= maxNamed:
		return backlog.Because(backlog.ErrNotTracked,
			"%s is one too many: %d were asked for in the last %s, remove unused triggers", a,
			maxNamed, trackFor)
	}
	return nil
}

// renew notes the question, and says whether the interest in the store is to begin or to be renewed.
func (s *Signals) renew(a signalKey, subscription backlog.Subscription, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.lookups[a]
	if w == nil {
		w = &lookup{subscription: subscription}
		s.lookups[a] = w
		s.topics += len(subscription.Topics)
	}
	w.usedAt = now
	due := now.Sub(w.trackedAt) >= trackAgain
	if due {
		w.trackedAt = now
	}
	return due
}

// isAnswer says that the error is what there is to say, and not that it could not be found out.
func (a signalKey) isAnswer(err error) bool {
	if a.component != (function.Component{}) {
		return errors.Is(err, backlog.ErrFunctionNotFound) || errors.Is(err, backlog.ErrUnsupported)
	}
	return isInvalid(err)
}
