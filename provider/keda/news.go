// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxNews of topics or policies that are told apart; more are about everything.
const maxNews = 10_000

// news are what has changed since the last look.
type news struct {
	all      bool
	topics   map[string]struct{}
	policies map[types.NamespacedName]struct{}
}

// about says whether the news may change what is known of the trigger. Which topics a policy, an object or a function
// reads is not known here, so that news of any topic are about it: a look costs a few µs, and a decision follows only
// from another reading.
func (n news) about(t Trigger) bool {
	if n.all {
		return true
	}
	if t.Subject.Policy != "" {
		if _, changed := n.policies[types.NamespacedName{Namespace: t.Subject.Namespace, Name: t.Subject.Policy}]; changed {
			return true
		}
	}
	switch {
	case len(n.topics) == 0 || t.followsPolicy():
		return false
	case t.Subject.Topics == "":
		return true
	}
	for name := range strings.SplitSeq(t.Subject.Topics, ",") {
		if _, changed := n.topics[name]; changed {
			return true
		}
	}
	return false
}

// inbox gathers news. It is safe for concurrent use.
type inbox struct {
	// arrived has an element while there are news.
	arrived chan struct{}

	// mu guards news.
	mu   sync.Mutex
	news news
}

func newInbox() *inbox { return &inbox{arrived: make(chan struct{}, 1)} }

// put adds news; it never blocks.
func (b *inbox) put(add func(n *news)) {
	b.mu.Lock()
	if b.news.topics == nil {
		b.news.topics, b.news.policies = map[string]struct{}{}, map[types.NamespacedName]struct{}{}
	}
	add(&b.news)
	if len(b.news.topics) > maxNews || len(b.news.policies) > maxNews {
		b.news.all = true
	}
	b.mu.Unlock()
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// take the news that have gathered.
func (b *inbox) take() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.news
	b.news = news{}
	return taken
}

// Poked tells that there is news of a topic, so that what rests on it is looked at again within about 100 ms. It never
// blocks.
func (s *Server) Poked(topic backlog.Topic) {
	s.inbox.put(func(n *news) {
		if !n.all {
			n.topics[topic.Name] = struct{}{}
		}
	})
}

// PolicyChanged tells that a policy has changed, come or gone, likewise.
func (s *Server) PolicyChanged(key types.NamespacedName) {
	s.inbox.put(func(n *news) {
		if !n.all {
			n.policies[key] = struct{}{}
		}
	})
}

// Changed tells that anything may have changed, such as the bounds of ScaledObjects or who decides, likewise.
func (s *Server) Changed() { s.inbox.put(func(n *news) { n.all = true }) }
