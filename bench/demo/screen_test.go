// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
)

func TestRow(t *testing.T) {
	one := run.Sample{Seconds: 1, Done: new(int64(0)), ReadyReplicas: new(0)}
	for name, test := range map[string]struct {
		sample sample
		want   string
	}{
		"everything is known": {
			sample{in: 149.6, why: "150/s / (0.7 x 49.8/s) = 4.31", Sample: run.Sample{
				Seconds: 65, Published: 3000, Done: new(int64(1000)), P50Seconds: new(8.149),
				DesiredReplicas: new(5), SpecReplicas: new(4), ReadyReplicas: new(3),
			}},
			" 1:05     150     2000    8.1s        5        4        3  150/s / (0.7 x 49.8/s) = 4.31",
		},
		"an unknown value is a dash, not a zero": {
			sample{Sample: one},
			" 0:01       0        0       -        -        -        0",
		},
		"a long reason is cut to one line of the table's width": {
			sample{Sample: one, why: "calling the broker:\n" + strings.Repeat("é", 100)},
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

// of is a sample without messages.
func of(seconds float64, spec, ready int) sample {
	return sample{Sample: run.Sample{
		Seconds: seconds, SpecReplicas: &spec, Pods: &spec, ReadyReplicas: &ready, Done: new(int64(0)),
	}}
}

// shown is the output of a minute with a sample a second, in which replicas change at 0:31.
func shown(live bool) string {
	var out strings.Builder
	s := screen{out: &out, live: live}
	for second := 1; second <= 60; second++ {
		one := of(float64(second)+0.03, 1, 1)
		if second > 30 {
			one.SpecReplicas = new(5)
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
	s.show(of(1, 1, 1))
	s.show(of(2, 1, 1))
	s.show(of(3, 5, 1))
	s.show(of(4, 5, 2))
	s.show(of(5, 5, 2))
	require.Equal(t, 4, strings.Count(out.String(), "\n"), "a header and three rows:\n%s", out.String())
}

func TestOnATerminalTheLastLineIsRewrittenEachSecond(t *testing.T) {
	text := shown(true)
	require.Equal(t, 60+1, strings.Count(text, anew), "once per sample and at the end")
	require.Equal(t, 13, strings.Count(text, "\n"), "the header and the permanent rows")
	require.Equal(t, strings.Count(text, noWrap), strings.Count(text, wrap), "the terminal must be left as it was")
	require.True(t, strings.HasSuffix(text, anew), "the cursor must be left at the beginning of a line")
}
