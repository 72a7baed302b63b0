// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTimeline(t *testing.T) {
	at := func(seconds int64) time.Time { return time.Unix(seconds, 0) }
	type timeline = Timeline[string]
	type moments = map[string]*Moment[string]
	tests := map[string]struct {
		change func(l *timeline, m moments)
		want   []string
	}{
		"orders elements by time":           {func(*timeline, moments) {}, []string{"a", "b", "c"}},
		"moves an element to a later time":  {func(l *timeline, m moments) { l.Set(m["a"], at(9)) }, []string{"b", "c", "a"}},
		"moves an element to an early time": {func(l *timeline, m moments) { l.Set(m["c"], at(0)) }, []string{"c", "a", "b"}},
		"drops an element":                  {func(l *timeline, m moments) { l.Remove(m["b"]) }, []string{"a", "c"}},
		"ignores an unknown element":        {func(l *timeline, m moments) { l.Remove(m["d"]) }, []string{"a", "b", "c"}},
		"adds a dropped element again": {
			func(l *timeline, m moments) { l.Remove(m["a"]); l.Set(m["a"], at(9)) }, []string{"b", "c", "a"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			m := moments{}
			for _, name := range []string{"a", "b", "c", "d"} {
				m[name] = &Moment[string]{Element: name}
			}
			var l timeline
			l.Set(m["b"], at(2))
			l.Set(m["a"], at(1))
			l.Set(m["c"], at(3))
			test.change(&l, m)
			require.Equal(t, len(test.want), l.Len())

			_, due := l.Due(at(-1))
			require.False(t, due, "no element is due before its time")
			var got []string
			for one, due := l.Due(at(9)); due; one, due = l.Due(at(9)) {
				got = append(got, one)
				l.Remove(m[one])
			}
			require.Equal(t, test.want, got)
			require.Zero(t, l.Len())
		})
	}
}
