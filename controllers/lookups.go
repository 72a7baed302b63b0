// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"maps"
	"sync"
	"time"
)

// ConfigMaps and Secrets are read one by one, for there is no permission to list them: more than ours stand in such
// places.
const (
	// lookupFor: an address or a token that moves is seen a minute late, which is early enough.
	lookupFor = time.Minute
	// lookupTroubleFor: what is missing is usually about to be created, and what does not work about to be corrected.
	lookupTroubleFor = 10 * time.Second
	// lookupTimeout bounds one read.
	lookupTimeout = 5 * time.Second
	// maxLookups bounds the memory of it: some 4 MB as a rule. Each of 10k policies may name one of its own.
	maxLookups = 20_000
)

// lookups remembers what was read from the API server one by one.
type lookups[K comparable, V any] struct {
	now func() time.Time

	// mu guards known.
	mu    sync.Mutex
	known map[K]lookup[V]
}

type lookup[V any] struct {
	value V
	// readAt is when it was read, and until how long that counts.
	readAt, until time.Time
}

func newLookups[K comparable, V any](now func() time.Time) *lookups[K, V] {
	return &lookups[K, V]{now: now, known: map[K]lookup[V]{}}
}

// find returns what is remembered, or reads it. A value that is in trouble is kept for a shorter time; an error, which is
// transient, not at all.
func (l *lookups[K, V]) find(ctx context.Context, key K, read func(context.Context) (value V, troubled bool, err error)) (V, error) {
	now := l.now()
	l.mu.Lock()
	found, seen := l.known[key]
	l.mu.Unlock()
	if seen && now.Before(found.until) {
		return found.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	value, troubled, err := read(ctx)
	if err != nil {
		return value, err
	}
	found = lookup[V]{value: value, readAt: now, until: now.Add(lookupFor)}
	if troubled {
		found.until = now.Add(lookupTroubleFor)
	}
	l.remember(key, found, now)
	return value, nil
}

// remember keeps a value, and forgets those that are due anyway when there are too many.
func (l *lookups[K, V]) remember(key K, found lookup[V], now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= maxLookups {
		maps.DeleteFunc(l.known, func(_ K, old lookup[V]) bool { return !now.Before(old.until) })
	}
	if len(l.known) >= maxLookups {
		clear(l.known)
	}
	l.known[key] = found
}

// doubt has the values that match read again soon, though not more often than what is in trouble.
func (l *lookups[K, V]) doubt(match func(K, V) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, found := range l.known {
		if soon := found.readAt.Add(lookupTroubleFor); soon.Before(found.until) && match(key, found.value) {
			found.until = soon
			l.known[key] = found
		}
	}
}

// doubtOne is doubt for one value.
func (l *lookups[K, V]) doubtOne(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, seen := l.known[key]
	if soon := found.readAt.Add(lookupTroubleFor); seen && soon.Before(found.until) {
		found.until = soon
		l.known[key] = found
	}
}

// recall returns what is remembered, however old.
func (l *lookups[K, V]) recall(key K) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found, seen := l.known[key]
	return found.value, seen
}
