// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

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
	// LookupTTL: an address or a token that moves is seen a minute late, which is early enough.
	LookupTTL = time.Minute
	// lookupRetryAfter: what is missing is usually about to be created, and what does not work about to be corrected.
	lookupRetryAfter = 10 * time.Second
	// lookupTimeout bounds one read.
	lookupTimeout = 5 * time.Second
	// maxLookups bounds the memory of it: some 4 MB as a rule. Each of 10k policies may name one of its own.
	maxLookups = 20_000
	// lookupUnusedTTL is how long an unused entry is cached, Secrets above all: twice the longest poll interval.
	lookupUnusedTTL = 10 * time.Minute
)

// Lookups remembers what was read from the API server one by one.
type Lookups[K comparable, V any] struct {
	now func() time.Time
	// invalidated says that a value which was read then may have changed; nil for never.
	invalidated func(value V, readAt time.Time) bool
	// ttl is how long a value without trouble counts; 0 for lookupFor.
	ttl time.Duration

	// mu guards known and what it points to.
	mu    sync.Mutex
	known map[K]*lookup[V]
}

type lookup[V any] struct {
	value V
	// readAt is when it was read, until how long that counts, usedAt when a caller last requested it.
	readAt, until, usedAt time.Time
}

// NewLookups remembers nothing yet; now is the time, such as time.Now.
func NewLookups[K comparable, V any](now func() time.Time) *Lookups[K, V] {
	return &Lookups[K, V]{now: now, known: map[K]*lookup[V]{}}
}

// NewShortLookups remembers a value without trouble for so long.
func NewShortLookups[K comparable, V any](now func() time.Time, ttl time.Duration) *Lookups[K, V] {
	l := NewLookups[K, V](now)
	l.ttl = ttl
	return l
}

// Find returns what is remembered, or reads it. A value that is in trouble is kept for a shorter time; an error, which
// is transient, not at all.
func (l *Lookups[K, V]) Find(ctx context.Context, key K,
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
	valid := cmp.Or(l.ttl, LookupTTL)
	if troubled {
		valid = lookupRetryAfter
	}
	l.Put(key, value, now, valid)
	return value, nil
}

// mayHaveChanged is about a value in doubt, which is read again no more often than one in trouble.
func (l *Lookups[K, V]) mayHaveChanged(found lookup[V], now time.Time) bool {
	return l.invalidated != nil && now.Sub(found.readAt) >= lookupRetryAfter && l.invalidated(found.value, found.readAt)
}

// use returns a copy of the cached entry, and marks it as used.
func (l *Lookups[K, V]) use(key K, now time.Time) (found lookup[V], seen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.known[key]
	if known == nil {
		return lookup[V]{}, false
	}
	known.usedAt = now
	return *known, true
}

// Put keeps a value that was read now, and forgets those that are due anyway when there are too many.
func (l *Lookups[K, V]) Put(key K, value V, now time.Time, valid time.Duration) {
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

// Invalidate has the value read again soon, though not more often than what is in trouble.
func (l *Lookups[K, V]) Invalidate(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[key]; found != nil {
		if soon := found.readAt.Add(lookupRetryAfter); soon.Before(found.until) {
			found.until = soon
		}
	}
}

// expire has a value that is known to have changed read again.
func (l *Lookups[K, V]) expire(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[key]; found != nil {
		found.until = l.now()
	}
}

// Last returns what is remembered, however old.
func (l *Lookups[K, V]) Last(key K) (V, bool) {
	found, seen := l.use(key, l.now())
	return found.value, seen
}

// Forget drops entries that no caller has used lately.
func (l *Lookups[K, V]) Forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ K, old *lookup[V]) bool { return now.Sub(old.usedAt) >= lookupUnusedTTL })
}

// Len is how many values are remembered.
func (l *Lookups[K, V]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.known)
}
