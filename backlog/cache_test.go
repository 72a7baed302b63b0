// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCache(t *testing.T) {
	start := time.Unix(1000, 0)
	after := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	held := func(c *Cache[string, int], now time.Time) map[string]int {
		all := map[string]int{}
		for _, key := range []string{"a", "b", "c"} {
			if value, ok := c.Get(key, now); ok {
				all[key] = value
			}
		}
		return all
	}
	tests := map[string]struct {
		use  func(t *testing.T, c *Cache[string, int])
		now  time.Time
		want map[string]int
	}{
		"holds a value until its time is over": {
			use: func(*testing.T, *Cache[string, int]) {}, now: after(9), want: map[string]int{"a": 1, "b": 2},
		},
		"forgets a value when its time is over": {
			use: func(*testing.T, *Cache[string, int]) {}, now: after(10), want: map[string]int{"b": 2},
		},
		"holds a value longer that is put again": {
			use:  func(_ *testing.T, c *Cache[string, int]) { c.Put("a", 3, after(5)) },
			now:  after(12),
			want: map[string]int{"a": 3},
		},
		"drops the oldest beyond the limit": {
			use: func(_ *testing.T, c *Cache[string, int]) { c.Put("c", 3, after(2)) },
			now: after(2), want: map[string]int{"b": 2, "c": 3},
		},
		"drops expired values on a put": {
			use: func(t *testing.T, c *Cache[string, int]) {
				t.Helper()
				c.Put("c", 3, after(20))
				require.Equal(t, []int{3}, c.Values())
			},
			now: after(20), want: map[string]int{"c": 3},
		},
		"removes deleted values": {
			use: func(_ *testing.T, c *Cache[string, int]) {
				c.Delete("a")
				c.Delete("c")
			},
			now: after(1), want: map[string]int{"b": 2},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewCache[string, int](10*time.Second, 2)
			c.Put("a", 1, start)
			c.Put("b", 2, after(1))
			tt.use(t, c)
			require.Equal(t, tt.want, held(c, tt.now))
		})
	}
}
