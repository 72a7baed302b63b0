// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"container/heap"
	"time"
)

// Timeline orders elements by time. The zero value is empty. It is not safe for concurrent use.
type Timeline[E any] struct {
	queue timelineQueue[E]
}

// Moment is when an element is due on a Timeline. The element keeps it to move it later.
type Moment[E any] struct {
	Element E
	at      time.Time
	// position in the queue, from 1; 0 while it is on no Timeline.
	position int
}

// Set adds the moment, or moves it to another time.
func (t *Timeline[E]) Set(m *Moment[E], at time.Time) {
	m.at = at
	if m.position == 0 {
		heap.Push(&t.queue, m)
		return
	}
	heap.Fix(&t.queue, m.position-1)
}

// Remove removes the moment, if the Timeline has it.
func (t *Timeline[E]) Remove(m *Moment[E]) {
	if m.position > 0 {
		heap.Remove(&t.queue, m.position-1)
	}
}

// Due returns the earliest element, if its time has come.
func (t *Timeline[E]) Due(now time.Time) (element E, due bool) {
	if len(t.queue) == 0 || t.queue[0].at.After(now) {
		return element, false
	}
	return t.queue[0].Element, true
}

// Len is the number of elements.
func (t *Timeline[E]) Len() int { return len(t.queue) }

// timelineQueue implements heap.Interface.
type timelineQueue[E any] []*Moment[E]

func (q timelineQueue[E]) Len() int           { return len(q) }
func (q timelineQueue[E]) Less(i, j int) bool { return q[i].at.Before(q[j].at) }

func (q timelineQueue[E]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].position, q[j].position = i+1, j+1
}

func (q *timelineQueue[E]) Push(x any) {
	m, _ := x.(*Moment[E]) // only Set adds moments
	*q = append(*q, m)
	m.position = len(*q)
}

func (q *timelineQueue[E]) Pop() any {
	last := len(*q) - 1
	m := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	m.position = 0
	return m
}
