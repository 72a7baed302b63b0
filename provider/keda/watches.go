// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"slices"
	"strings"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

const (
	// MaxStreams open at once: two for each ScaledObject and operator, of which one is active. KEDA itself was seen with
	// 10,000 ScaledObjects at most.
	MaxStreams = 40_000
	// DefaultMaxStreamsPerNamespace of Config: others keep most of MaxStreams.
	DefaultMaxStreamsPerNamespace = MaxStreams / 4
	// streamBoundFlag is the flag of the scaler that sets the bound; messages name it.
	streamBoundFlag = "--max-streams-per-namespace"
)

// watches are the triggers with open streams. They are safe for concurrent use.
type watches struct {
	// perNamespace bounds the streams of one namespace.
	perNamespace int

	// mu guards all below.
	mu         sync.Mutex
	watched    map[unique.Handle[Trigger]]*watch
	streams    int
	namespaces map[string]int // streams
	drained    bool
}

// watch is a trigger with open streams, and its current view.
type watch struct {
	trigger unique.Handle[Trigger]

	// mu guards all below.
	mu      sync.Mutex
	view    view
	streams []*stream
	// begun counts refreshes, and shown is the one that view is from: new streams refresh concurrently with run.
	begun, shown uint64
}

// view is what streams send of a trigger.
type view struct {
	// spec without a metric is unknown.
	spec Spec
	// active is one of activityUnknown, inactive and isActive.
	active activity
}

// activity of a trigger; once known, it stays while it is unknown.
type activity int

const (
	activityUnknown activity = iota
	inactive
	isActive
)

type stream struct {
	// changed has an element if the view has changed, or the end has come.
	changed chan struct{}
	// end is when it ends; zero for never.
	end time.Time
}

func (s *stream) over(now time.Time) bool { return !s.end.IsZero() && !now.Before(s.end) }

// notify never waits for the client.
func (s *stream) notify() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

func newWatches(perNamespace int) *watches {
	return &watches{
		perNamespace: perNamespace, watched: map[unique.Handle[Trigger]]*watch{}, namespaces: map[string]int{},
	}
}

// add adds a stream that ends at some time, unless there are too many.
func (w *watches) add(t Trigger, end time.Time) (*watch, *stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	namespace, key := t.Object.Namespace, unique.Make(t)
	switch {
	case w.streams >= MaxStreams:
		return nil, nil, response.Errorf(response.Busy, "the scaler is overloaded: %d streams are open", MaxStreams)
	case w.namespaces[namespace] >= w.perNamespace:
		return nil, nil, response.Errorf(response.Busy, "%d streams for namespace %s are open, and the bound of a "+
			"namespace is %d: use fewer external-push triggers, or raise %s (value scaler.maxStreamsPerNamespace of the "+
			"chart); KEDA still polls the trigger", w.namespaces[namespace], namespace, w.perNamespace, streamBoundFlag)
	}
	w.streams++
	w.namespaces[namespace]++
	one, found := w.watched[key]
	if !found {
		one = &watch{trigger: key}
		w.watched[key] = one
	}
	st := &stream{changed: make(chan struct{}, 1), end: end}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.streams = append(one.streams, st)
	return one, st, nil
}

// remove removes a stream, and its trigger with the last one.
func (w *watches) remove(one *watch, st *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams--
	namespace := one.trigger.Value().Object.Namespace
	if w.namespaces[namespace]--; w.namespaces[namespace] == 0 {
		delete(w.namespaces, namespace)
	}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.streams = slices.DeleteFunc(one.streams, func(other *stream) bool { return other == st })
	if len(one.streams) == 0 {
		delete(w.watched, one.trigger)
	}
}

func (w *watches) affected(c changes) (affected []*watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, one := range w.watched {
		if c.affect(t.Value()) {
			affected = append(affected, one)
		}
	}
	return affected
}

func (w *watches) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drained = true
	for _, one := range w.watched {
		one.mu.Lock()
		for _, st := range one.streams {
			st.notify()
		}
		one.mu.Unlock()
	}
}

func (w *watches) over(st *stream, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.drained || st.over(now)
}

func (w *watch) current() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

func (w *watch) begin() (number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	return w.begun
}

// publish notifies the streams of a changed view, and those that have to end. It ignores a refresh that began before
// the last published one. It never waits for a client.
func (w *watch) publish(number uint64, now time.Time, change func(v *view)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number < w.shown {
		return
	}
	before := w.view
	w.shown = number
	change(&w.view)
	for _, st := range w.streams {
		if w.view != before || st.over(now) {
			st.notify()
		}
	}
}

// maxChanges is how many changed topics or policies are kept by name; more affect all triggers.
const maxChanges = 10_000

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
