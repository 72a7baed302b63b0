// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"container/list"
	"sync"
	"time"
)

// Cache keeps values for a limited time, and a limited number of them: beyond the limit it drops the oldest. It is safe
// for concurrent use.
type Cache[K comparable, V any] struct {
	ttl   time.Duration
	limit int

	mu sync.Mutex
	// entries and order, which has the oldest in front, are guarded by mu.
	entries map[K]*list.Element
	order   list.List
}

type cached[K comparable, V any] struct {
	key   K
	value V
	at    time.Time
}

// NewCache returns a Cache that keeps a value for less than ttl after Put, and at most limit values.
func NewCache[K comparable, V any](ttl time.Duration, limit int) *Cache[K, V] {
	return &Cache[K, V]{ttl: ttl, limit: limit, entries: map[K]*list.Element{}}
}

// Get returns the value, unless it has expired.
func (c *Cache[K, V]) Get(key K, now time.Time) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	element, ok := c.entries[key]
	if !ok || c.expired(element, now) {
		return value, false
	}
	return c.entry(element).value, true
}

// Put adds the value, and drops those that have expired or exceed the limit.
func (c *Cache[K, V]) Put(key K, value V, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.order.Remove(element)
	}
	c.entries[key] = c.order.PushBack(&cached[K, V]{key: key, value: value, at: now})
	for {
		oldest := c.order.Front()
		if oldest == nil || (len(c.entries) <= c.limit && !c.expired(oldest, now)) {
			return
		}
		c.drop(oldest)
	}
}

// Delete removes the value.
func (c *Cache[K, V]) Delete(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.entries[key]; ok {
		c.drop(element)
	}
}

// Values are all values, the oldest first; some may have expired.
func (c *Cache[K, V]) Values() []V {
	c.mu.Lock()
	defer c.mu.Unlock()
	values := make([]V, 0, len(c.entries))
	for element := c.order.Front(); element != nil; element = element.Next() {
		values = append(values, c.entry(element).value)
	}
	return values
}

// entry, expired and drop need mu to be held.
func (c *Cache[K, V]) entry(element *list.Element) *cached[K, V] {
	entry, _ := element.Value.(*cached[K, V]) // only Put adds elements
	return entry
}

func (c *Cache[K, V]) expired(element *list.Element, now time.Time) bool {
	return now.Sub(c.entry(element).at) >= c.ttl
}

func (c *Cache[K, V]) drop(element *list.Element) {
	delete(c.entries, c.entry(element).key)
	c.order.Remove(element)
}
