// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"sync"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

// maxStreams open at once: two for each ScaledObject and operator, of which one is active. KEDA itself was seen with
// 10,000 ScaledObjects at most.
const maxStreams = 40_000

// watches are the triggers with open streams. They are safe for concurrent use.
type watches struct {
	// mu guards all below.
	mu      sync.Mutex
	watched map[Trigger]*watch
	streams int
}

// watch is a trigger with open streams, and its current view.
type watch struct {
	trigger Trigger

	// mu guards all below.
	mu      sync.Mutex
	view    view
	streams map[*stream]struct{}
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

// stream is that of one client.
type stream struct {
	// changed has an element if the view has changed.
	changed chan struct{}
}

func newWatches() *watches { return &watches{watched: map[Trigger]*watch{}} }

// add adds a stream, unless there are too many.
func (w *watches) add(t Trigger) (*watch, *stream, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.streams >= maxStreams {
		return nil, nil, answer.Errorf(answer.Busy, "the scaler is overloaded: %d streams are open", maxStreams)
	}
	w.streams++
	one, found := w.watched[t]
	if !found {
		one = &watch{trigger: t, streams: map[*stream]struct{}{}}
		w.watched[t] = one
	}
	st := &stream{changed: make(chan struct{}, 1)}
	one.mu.Lock()
	defer one.mu.Unlock()
	one.streams[st] = struct{}{}
	return one, st, nil
}

// remove removes a stream, and its trigger with the last one.
func (w *watches) remove(one *watch, st *stream) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams--
	one.mu.Lock()
	defer one.mu.Unlock()
	delete(one.streams, st)
	if len(one.streams) == 0 {
		delete(w.watched, one.trigger)
	}
}

// affected returns the watched triggers that the changes affect.
func (w *watches) affected(c changes) (affected []*watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, one := range w.watched {
		if c.affect(t) {
			affected = append(affected, one)
		}
	}
	return affected
}

// current returns the current view of the trigger.
func (w *watch) current() view {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view
}

// begin begins a refresh, and returns its number.
func (w *watch) begin() (number uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	return w.begun
}

// publish notifies the streams of a changed view. It ignores a refresh that began before the last published one. It
// never waits for a client.
func (w *watch) publish(number uint64, change func(v *view)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if number < w.shown {
		return
	}
	before := w.view
	w.shown = number
	change(&w.view)
	if w.view == before {
		return
	}
	for st := range w.streams {
		select {
		case st.changed <- struct{}{}:
		default:
		}
	}
}
