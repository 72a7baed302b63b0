// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
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
	// lookupUnusedFor is how long what nobody asks for is remembered, Secrets above all: twice the longest poll interval.
	lookupUnusedFor = 10 * time.Minute
)

// lookups remembers what was read from the API server one by one.
type lookups[K comparable, V any] struct {
	now func() time.Time
	// doubted says that a value which was read then may have changed; nil for never.
	doubted func(value V, readAt time.Time) bool
	// valid is how long a value without trouble counts; 0 for lookupFor.
	valid time.Duration

	// mu guards known and what it points to.
	mu    sync.Mutex
	known map[K]*lookup[V]
}

type lookup[V any] struct {
	value V
	// readAt is when it was read, until how long that counts, usedAt when somebody asked last.
	readAt, until, usedAt time.Time
}

func newLookups[K comparable, V any](now func() time.Time) *lookups[K, V] {
	return &lookups[K, V]{now: now, known: map[K]*lookup[V]{}}
}

// find returns what is remembered, or reads it. A value that is in trouble is kept for a shorter time; an error, which
// is transient, not at all.
func (l *lookups[K, V]) find(ctx context.Context, key K,
	read func(context.Context) (value V, troubled bool, err error),
) (V, error) {
	now := l.now()
	found, seen := l.use(key, now)
	if seen && now.Before(found.until) && !l.mayHaveChanged(found, now) {
		return found.value, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	value, troubled, err := read(ctx)
	if err != nil {
		return value, err
	}
	valid := cmp.Or(l.valid, lookupFor)
	if troubled {
		valid = lookupTroubleFor
	}
	l.remember(key, value, now, valid)
	return value, nil
}

// mayHaveChanged is about a value in doubt, which is read again no more often than one in trouble.
func (l *lookups[K, V]) mayHaveChanged(found lookup[V], now time.Time) bool {
	return l.doubted != nil && now.Sub(found.readAt) >= lookupTroubleFor && l.doubted(found.value, found.readAt)
}

// use returns a copy of what is remembered, and notes that somebody asked.
func (l *lookups[K, V]) use(key K, now time.Time) (found lookup[V], seen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.known[key]
	if known == nil {
		return lookup[V]{}, false
	}
	known.usedAt = now
	return *known, true
}

// remember keeps a value that was read now, and forgets those that are due anyway when there are too many.
func (l *lookups[K, V]) remember(key K, value V, now time.Time, valid time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= maxLookups {
		maps.DeleteFunc(l.known, func(_ K, old *lookup[V]) bool { return !now.Before(old.until) })
	}
	if len(l.known) >= maxLookups {
		clear(l.known)
	}
	l.known[key] = &lookup[V]{value: value, readAt: now, until: now.Add(valid), usedAt: now}
}

// doubt has the value read again soon, though not more often than what is in trouble.
func (l *lookups[K, V]) doubt(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[key]; found != nil {
		if soon := found.readAt.Add(lookupTroubleFor); soon.Before(found.until) {
			found.until = soon
		}
	}
}

// expire has a value that is known to have changed read again.
func (l *lookups[K, V]) expire(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[key]; found != nil {
		found.until = l.now()
	}
}

// recall returns what is remembered, however old.
func (l *lookups[K, V]) recall(key K) (V, bool) {
	found, seen := l.use(key, l.now())
	return found.value, seen
}

// forget drops what nobody has asked for lately.
func (l *lookups[K, V]) forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ K, old *lookup[V]) bool { return now.Sub(old.usedAt) >= lookupUnusedFor })
}

// len is how many values are remembered.
func (l *lookups[K, V]) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}
