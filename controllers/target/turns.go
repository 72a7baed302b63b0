// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

// Turns are queues of namespaces that take turns. The zero value is empty. It is not safe for concurrent use.
type Turns[T any] struct {
	// namespaces with an element, the next one first.
	namespaces []string
	queues     map[string][]T
}

// Add adds an element of a namespace.
func (t *Turns[T]) Add(namespace string, element T) {
	if t.queues == nil {
		t.queues = map[string][]T{}
	}
	if len(t.queues[namespace]) == 0 {
		t.namespaces = append(t.namespaces, namespace)
	}
	t.queues[namespace] = append(t.queues[namespace], element)
}

// Next removes the first element of the next namespace; false without one.
func (t *Turns[T]) Next() (element T, some bool) {
	if t.Empty() {
		return element, false
	}
	namespace := t.namespaces[0]
	element = t.queues[namespace][0]
	t.namespaces, t.queues[namespace] = t.namespaces[1:], t.queues[namespace][1:]
	if len(t.queues[namespace]) > 0 {
		t.namespaces = append(t.namespaces, namespace)
	} else {
		delete(t.queues, namespace)
	}
	return element, true
}

// Len is the number of elements of a namespace.
func (t *Turns[T]) Len(namespace string) int { return len(t.queues[namespace]) }

// Empty reports whether no namespace has an element.
func (t *Turns[T]) Empty() bool { return len(t.namespaces) == 0 }
