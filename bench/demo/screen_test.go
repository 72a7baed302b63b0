// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestRow(t *testing.T) {
	for name, test := range map[string]struct {
		sample sample
		want   string
	}{
		"everything is known": {
			sample{
				at: 65 * time.Second, in: 149.6, published: 3000, done: 1000, wait: 8149 * time.Millisecond, waitKnown: true,
				desired: known(5), current: known(4), running: 3, why: "150/s / (0.7 x 49.8/s) = 4.31",
			},
			" 1:05     150     2000    8.1s        5        4        3  150/s / (0.7 x 49.8/s) = 4.31",
		},
		"an unknown value is a dash, not a zero": {
			sample{at: time.Second},
			" 0:01       0        0       -        -        -        0",
		},
		"a long reason is cut to one line of the table's width": {
			sample{at: time.Second, why: "calling the broker:\n" + strings.Repeat("é", 100)},
			" 0:01       0        0       -        -        -        0  calling the broker: " + strings.Repeat("é", 18) + "...",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := row(test.sample)
			require.Equal(t, test.want, got)
			require.LessOrEqual(t, utf8.RuneCountInString(got), width)
		})
	}
	require.Equal(t, " time    in/s  backlog    wait  desired  current  running  why", header())
}

// shown is the output of a minute with a sample a second, in which replicas change at 0:31.
func shown(live bool) string {
	var out strings.Builder
	s := screen{out: &out, live: live}
	for second := 1; second <= 60; second++ {
		one := sample{at: time.Duration(second)*time.Second + 30*time.Millisecond, current: known(1), running: 1}
		if second > 30 {
			one.current = known(5)
		}
		s.show(one)
	}
	s.end()
	return out.String()
}

func TestWithoutATerminalLinesAreOnlyAppended(t *testing.T) {
	text := shown(false)
	require.NotContains(t, text, "\x1b")
	require.NotContains(t, text, "\r")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	require.Equal(t, header(), lines[0])
	var times []string
	for _, line := range lines[1:] {
		times = append(times, strings.Fields(line)[0])
	}
	require.Equal(t, []string{
		"0:01", "0:06", "0:11", "0:16", "0:21", "0:26", "0:31", "0:36", "0:41", "0:46", "0:51", "0:56",
	}, times, "every five seconds")
}

func TestARowStaysWhenReplicasChange(t *testing.T) {
	var out strings.Builder
	s := screen{out: &out}
	s.show(sample{at: 1 * time.Second, current: known(1), running: 1})
	s.show(sample{at: 2 * time.Second, current: known(1), running: 1})
	s.show(sample{at: 3 * time.Second, current: known(5), running: 1})
	s.show(sample{at: 4 * time.Second, current: known(5), running: 2})
	s.show(sample{at: 5 * time.Second, current: known(5), running: 2})
	require.Equal(t, 4, strings.Count(out.String(), "\n"), "a header and three rows:\n%s", out.String())
}

func TestOnATerminalTheLastLineIsRewrittenEachSecond(t *testing.T) {
	text := shown(true)
	require.Equal(t, 60+1, strings.Count(text, anew), "once per sample and at the end")
	require.Equal(t, 13, strings.Count(text, "\n"), "the header and the permanent rows")
	require.Equal(t, strings.Count(text, noWrap), strings.Count(text, wrap), "the terminal must be left as it was")
	require.True(t, strings.HasSuffix(text, anew), "the cursor must be left at the beginning of a line")
}
