// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxChanges is how many changed topics or policies are kept by name; more affect all triggers.
const maxChanges = 10_000

// changes are the changes since the last refresh.
type changes struct {
	all      bool
	topics   map[string]struct{}
	policies map[types.NamespacedName]struct{}
}

// affect reports whether the changes may affect the trigger. The topics of a policy, an object or a function are not
// known here, so a change of any topic affects it: a refresh takes a few µs.
func (c changes) affect(t Trigger) bool {
	if c.all {
		return true
	}
	if t.Subject.Policy != "" {
		if _, changed := c.policies[types.NamespacedName{Namespace: t.Subject.Namespace, Name: t.Subject.Policy}]; changed {
			return true
		}
	}
	switch {
	case len(c.topics) == 0 || t.followsPolicy():
		return false
	case t.Subject.Topics == "":
		return true
	}
	for name := range strings.SplitSeq(t.Subject.Topics, ",") {
		if _, changed := c.topics[name]; changed {
			return true
		}
	}
	return false
}

// changeQueue collects changes until a refresh. It is bounded, and safe for concurrent use.
type changeQueue struct {
	// ready has an element while there are changes.
	ready chan struct{}

	// mu guards pending.
	mu      sync.Mutex
	pending changes
}

func newChangeQueue() *changeQueue { return &changeQueue{ready: make(chan struct{}, 1)} }

// add records changes; it never blocks.
func (q *changeQueue) add(change func(c *changes)) {
	q.mu.Lock()
	if q.pending.topics == nil {
		q.pending.topics, q.pending.policies = map[string]struct{}{}, map[types.NamespacedName]struct{}{}
	}
	if !q.pending.all {
		change(&q.pending)
	}
	if len(q.pending.topics) > maxChanges || len(q.pending.policies) > maxChanges {
		q.pending.all = true
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// drain returns the collected changes, and clears them.
func (q *changeQueue) drain() changes {
	q.mu.Lock()
	defer q.mu.Unlock()
	drained := q.pending
	q.pending = changes{}
	return drained
}

// TopicChanged enqueues a topic, so that its triggers are refreshed within about 100 ms. It never blocks.
func (s *Server) TopicChanged(topic backlog.Topic) {
	s.queue.add(func(c *changes) { c.topics[topic.Name] = struct{}{} })
}

// PolicyChanged enqueues a policy that was created, changed or deleted, likewise.
func (s *Server) PolicyChanged(key types.NamespacedName) {
	s.queue.add(func(c *changes) { c.policies[key] = struct{}{} })
}
