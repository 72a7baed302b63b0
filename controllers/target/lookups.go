// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"maps"
	"sync"
	"time"
)

// The adapter may not list ConfigMaps and Secrets, because it needs few of them: it reads them one by one.
const (
	// lookupTTL is how long a valid value is cached: a change of an address or a token is noticed within a minute.
	lookupTTL = time.Minute
	// lookupRetryAfter is how long a plan.Violation is cached: a user is usually about to create or fix the object.
	lookupRetryAfter = 10 * time.Second
	// lookupTimeout bounds one read.
	lookupTimeout = 5 * time.Second
	// maxLookups bounds the memory, usually some 4 MB. Each of 10k policies may name an object of its own.
	maxLookups = 20_000
	// lookupUnusedTTL is how long an unused entry, such as a Secret, is cached: twice the longest poll interval.
	lookupUnusedTTL = 10 * time.Minute
)

// Lookups caches what is read one by one from the API server.
type Lookups[K comparable, V any] struct {
	now func() time.Time
	// invalidated reports whether a value which was read then may have changed; nil for never.
	invalidated func(value V, readAt time.Time) bool
	// ttl of a valid value.
	ttl time.Duration

	// mu guards known and what it points to.
	mu    sync.Mutex
	known map[K]*lookup[V]
}

type lookup[V any] struct {
	value V
	// invalid is a plan.Violation, or nil.
	invalid error
	// readAt is when it was read, until when it expires, usedAt when a caller last requested it.
	readAt, until, usedAt time.Time
}

// NewLookups returns an empty cache in which a valid value expires after ttl; now is the clock, such as time.Now.
func NewLookups[K comparable, V any](now func() time.Time, ttl time.Duration) *Lookups[K, V] {
	return &Lookups[K, V]{now: now, ttl: ttl, known: map[K]*lookup[V]{}}
}

// Find returns the cached value, or reads it. A plan.Violation expires sooner, and another error, which is transient,
// is not cached.
func (l *Lookups[K, V]) Find(ctx context.Context, key K, read func(context.Context, K) (V, error)) (V, error) {
	now := l.now()
	found, seen := l.use(key, now)
	if seen && now.Before(found.until) && !l.mayHaveChanged(found, now) {
		return found.value, found.invalid
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	value, err := read(ctx, key)
	if err != nil && !IsInvalid(err) {
		return value, err
	}
	valid := l.ttl
	if err != nil {
		valid = lookupRetryAfter
	}
	l.put(key, lookup[V]{value: value, invalid: err, readAt: now, until: now.Add(valid), usedAt: now})
	return value, err
}

// valid reports whether a value is cached and has not expired.
func (l *Lookups[K, V]) valid(key K) bool {
	now := l.now()
	found, seen := l.use(key, now)
	return seen && now.Before(found.until)
}

// mayHaveChanged reports whether a value was invalidated. It is read again no more often than a plan.Violation.
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

// Put caches a value that was read now.
func (l *Lookups[K, V]) Put(key K, value V, now time.Time, valid time.Duration) {
	l.put(key, lookup[V]{value: value, readAt: now, until: now.Add(valid), usedAt: now})
}

// put drops expired values first, else all, if the cache is full.
func (l *Lookups[K, V]) put(key K, fresh lookup[V]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.known) >= maxLookups {
		maps.DeleteFunc(l.known, func(_ K, old *lookup[V]) bool { return !fresh.readAt.Before(old.until) })
	}
	if len(l.known) >= maxLookups {
		clear(l.known)
	}
	l.known[key] = &fresh
}

// Invalidate expires a value soon: it is read again no more often than a plan.Violation.
func (l *Lookups[K, V]) Invalidate(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[key]; found != nil {
		if soon := found.readAt.Add(lookupRetryAfter); soon.Before(found.until) {
			found.until = soon
		}
	}
}

// expire expires a value that is known to have changed.
func (l *Lookups[K, V]) expire(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.known[key]; found != nil {
		found.until = l.now()
	}
}

// Last returns the cached value, expired or not.
func (l *Lookups[K, V]) Last(key K) (V, bool) {
	found, seen := l.use(key, l.now())
	return found.value, seen
}

// Forget drops values that no caller has requested lately.
func (l *Lookups[K, V]) Forget(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.known, func(_ K, old *lookup[V]) bool { return now.Sub(old.usedAt) >= lookupUnusedTTL })
}
