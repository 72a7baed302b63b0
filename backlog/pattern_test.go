// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestParsePatternCompletesWhatPulsarCompletes(t *testing.T) {
	tests := map[string]struct{ text, want, namespace, problem string }{
		"a topic alone is in public/default": {
			text: "rx-.*", want: "persistent://public/default/rx-.*",
			namespace: "public/default",
		},
		"without a domain it is persistent": {
			text: "media/images/in-.*",
			want: "persistent://media/images/in-.*", namespace: "media/images",
		},
		"a complete one": {
			text: "persistent://media/im.ages/.*",
			want: "persistent://media/im.ages/.*", namespace: "media/im.ages",
		},
		"nothing": {
			text:    "",
			problem: "persistent://tenant/namespace/expression",
		},
		"no expression": {
			text:    "persistent://a/b/",
			problem: "persistent://tenant/namespace/expression",
		},
		"a namespace alone": {
			text:    "a/.*",
			problem: "persistent://tenant/namespace/expression",
		},
		"a slash in the expression": {text: "persistent://a/b/[^/]+", problem: "no slash within"},
		"an expression for the namespace": {
			text:    "persistent://public/.*/in",
			problem: "use a pattern for each namespace",
		},
		"an expression for the tenant": {
			text:    "persistent://.*/default/in",
			problem: "use a pattern for each namespace",
		},
		"non-persistent topics": {
			text:    "non-persistent://public/default/.*",
			problem: "keep no backlog",
		},
		"another domain": {text: "topic://public/default/.*", problem: "persistent://"},
		"an expression before the domain": {
			text:    "^persistent://public/default/.*",
			problem: "persistent://",
		},
		"a long one": {text: "rx-" + strings.Repeat("a", 1022), problem: "1025 characters, and at most 1024"},
		"repetitions of an expression": {
			text: "rx-" + strings.Repeat("(?:.?){1000}", 3), problem: "more than 2000 parts: use *",
		},
		"repetitions of a text": {text: "(?:" + strings.Repeat("a", 500) + "){5}", problem: "more than 2000 parts"},
		"an open repetition":    {text: "(?:abc){700,}", problem: "more than 2000 parts"},
		"repetitions of few characters": {
			text: "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", want: "persistent://public/default/[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?",
			namespace: "public/default",
		},
		"a lookahead, which RE2 lacks":                       {text: "(?!dead).*", problem: "or name the topics"},
		"a possessive quantifier, which RE2 lacks":           {text: "a*+", problem: "write it without"},
		"a backreference, which RE2 lacks":                   {text: `(a)\1`, problem: "write it without"},
		"an intersection, which RE2 reads as two ampersands": {text: "[a-z&&[^b]]", problem: "write the class out"},
		"a closing parenthesis without an opening one":       {text: "a)|(b", problem: "correct it"},
		"an invalid expression":                              {text: "in-[", problem: "missing closing ]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pattern, err := backlog.ParsePattern(tt.text)
			if tt.problem != "" {
				require.ErrorIs(t, err, backlog.ErrUnsupported)
				require.ErrorContains(t, err, tt.problem)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.want, pattern.String())
			require.Equal(t, tt.namespace, backlog.NamespaceOf(cluster(), pattern.String()).Name)
		})
	}
}

func TestAPatternMatchesWholeNamesOfItsNamespace(t *testing.T) {
	tests := map[string]struct {
		pattern, topic string
		want           bool
	}{
		"a match":                             {"rx-.*", "persistent://public/default/rx-1", true},
		"an empty rest matches too":           {"rx-.*", "persistent://public/default/rx-", true},
		"a longer name":                       {"rx-[0-9]", "persistent://public/default/rx-10", false},
		"a name that begins earlier":          {"rx-.*", "persistent://public/default/my-rx-1", false},
		"another namespace":                   {"rx-.*", "persistent://public/other/rx-1", false},
		"a namespace that a dot would match":  {"public/de.ault/.*", "persistent://public/default/rx-1", false},
		"an alternative belongs to the whole": {"a|b", "persistent://public/default/b", false},
		"alternatives in a group":             {"(a|b)", "persistent://public/default/b", true},
		"a non-persistent topic":              {".*", "non-persistent://public/default/rx-1", false},
		"a system topic":                      {".*", "persistent://public/default/__change_events", false},
		"a topic that only looks like one":    {".*", "persistent://public/default/__mine", true},
		"a system topic that is meant":        {"__.*", "persistent://public/default/__change_events", false},
		"a transaction buffer's snapshots": {
			".*", "persistent://public/default/__transaction_buffer_snapshot_segments",
			false,
		},
		"a transaction coordinator's log": {
			"persistent://pulsar/system/.*",
			"persistent://pulsar/system/__transaction_log_3", false,
		},
		"transaction coordinators": {
			"persistent://pulsar/system/.*",
			"persistent://pulsar/system/transaction_coordinator_assign", false,
		},
		"one of that name elsewhere":        {".*", "persistent://public/default/transaction_coordinator_assign", true},
		"a topic that keeps pending acks":   {".*", "persistent://public/default/in-sub__transaction_pending_ack", false},
		"quoted characters":                 {`\Qa.b\E`, "persistent://public/default/a.b", true},
		"quoted characters are not special": {`\Qa.b\E`, "persistent://public/default/axb", false},
		"capitals matter":                   {"rx", "persistent://public/default/RX", false},
		"capitals that do not matter":       {"(?i:rx)", "persistent://public/default/RX", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pattern, err := backlog.ParsePattern(tt.pattern)
			require.NoError(t, err)
			require.Equal(t, tt.want, pattern.Match(tt.topic))
		})
	}
	require.False(t, backlog.Pattern{}.Match("persistent://public/default/in"), "no pattern matches nothing")
}

func TestWithPatternsNamesEachOnce(t *testing.T) {
	b, err := backlog.ParsePattern("b.*")
	require.NoError(t, err)
	a, err := backlog.ParsePattern("a.*")
	require.NoError(t, err)
	plain := backlog.NewSubscription(cluster(), function, orders)
	with := plain.WithPatterns(b, a, b)
	require.Equal(t, []string{"persistent://public/default/a.*", "persistent://public/default/b.*"}, with.Patterns)
	require.Empty(t, plain.Patterns)
	require.False(t, plain.Equal(with))
}

// An accepted pattern is complete, parses as itself and matches nothing outside of its namespace.
func FuzzParsePattern(f *testing.F) {
	for _, text := range []string{
		"rx-.*", "a/b/c", "persistent://a/b/.*", "persistent://a/b/c|d", "(?i)x", `\Qa\E`, "a)|(b", "[a&&b]", "a/b",
		"x{1001}", "(?!x)", ".*-partition-0",
	} {
		f.Add(text, "persistent://public/default/rx-1")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		pattern, err := backlog.ParsePattern(text)
		if err != nil {
			require.ErrorIs(t, err, backlog.ErrUnsupported)
			require.Equal(t, backlog.Pattern{}, pattern)
			return
		}
		again, err := backlog.ParsePattern(pattern.String())
		require.NoError(t, err)
		require.Equal(t, pattern.String(), again.String())
		require.Equal(t, pattern.Match(name), again.Match(name))
		for _, one := range []string{"persistent://public/default/a", "persistent://a/b/c", name} {
			require.Equal(t, pattern.MatchWithoutPrefix(one), pattern.Match(one))
		}
		if pattern.Match(name) {
			require.Regexp(t, `\Apersistent://`, name)
			require.Contains(t, name, "://"+backlog.NamespaceOf(cluster(), pattern.String()).Name+"/")
		}
	})
}
