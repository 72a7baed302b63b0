// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pattern is a regular expression for topics of one namespace, as Pulsar's clients and functions use it (topicPattern,
// isRegexPattern). The zero value matches nothing.
type Pattern struct {
	text, namespace string
	// prefix is the literal prefix of all matches: most topics of a listing need no more than a comparison.
	prefix string
	whole  *regexp.Regexp
}

// ParsePattern parses a pattern and completes its short forms: rx-.* is persistent://public/default/rx-.*, and
// t/n/rx-.* is persistent://t/n/rx-.*. The namespace is literal. It returns ErrUnsupported with the fix for a pattern
// that cannot be followed.
//
// Source: Pulsar's TopicName.get, which finds the namespace in the pattern, and TopicList.filterTopics, which matches
// the rest (org.apache.pulsar.common), with RE2/J in the syntax of Go's regexp. A client does not complete a pattern
// without a domain, so it may find fewer topics: the others have no subscription then, and do not count.
func ParsePattern(text string) (Pattern, error) {
	complete := CompleteTopicName(text)
	domain, rest, _ := strings.Cut(complete, "://")
	switch {
	case domain == "non-persistent":
		return Pattern{}, patternError(text, "non-persistent topics keep no backlog")
	case domain != "persistent":
		return Pattern{}, patternError(text, "write it as persistent://tenant/namespace/expression")
	}
	parts := strings.Split(rest, "/")
	if len(parts) != 3 || parts[2] == "" {
		return Pattern{}, patternError(text,
			"write it as persistent://tenant/namespace/expression, with no slash within the expression: a pattern spans one "+
				"namespace")
	}
	if !IsEntityName(parts[0]) || !IsEntityName(parts[1]) {
		return Pattern{},
			patternError(text, "tenant and namespace are names, not expressions: use a pattern for each namespace")
	}
	if strings.Contains(rest, "&&") {
		return Pattern{}, patternError(text, "intersections (&&) mean something else outside of Java: write the class out")
	}
	return compilePattern(text, complete, parts)
}

func compilePattern(text, complete string, parts []string) (Pattern, error) {
	rest := strings.Join(parts, "/")
	if n := utf8.RuneCountInString(text); n > maxPatternLength {
		return Pattern{}, patternError(string([]rune(text)[:100])+"...", fmt.Sprintf("it has %d characters, and at most %d "+
			"are allowed: write a shorter one, or name the topics", n, maxPatternLength))
	}
	parsed, err := syntax.Parse(rest, syntax.Perl)
	if err == nil && patternSize(parsed) > maxPatternSize {
		return Pattern{}, patternError(text, fmt.Sprintf("its repetitions come to more than %d parts: use * in place of a "+
			"number", maxPatternSize))
	}
	expression, err := regexp.Compile(rest)
	if err != nil {
		return Pattern{}, patternError(text, strings.TrimPrefix(err.Error(), "error parsing regexp: ")+
			": correct it; RE2 has no lookaround, possessive quantifiers and backreferences: write it without them, or "+
			"name the topics")
	}
	whole, err := regexp.Compile(`\A(?:` + rest + `)\z`)
	if err != nil {
		return Pattern{}, patternError(text, err.Error())
	}
	p := Pattern{text: complete, namespace: parts[0] + "/" + parts[1], whole: whole}
	prefix, _ := expression.LiteralPrefix()
	p.prefix = "persistent://" + prefix
	return p, nil
}

const (
	// maxPatternLength of spec.subscription.topicsPattern is that of all patterns.
	maxPatternLength = 1024
	// maxPatternSize bounds the time for a topic: each character may be compared with each part.
	maxPatternSize = 2000
)

// patternSize is about the number of instructions that an expression is compiled to.
func patternSize(e *syntax.Regexp) int {
	size := 1
	if e.Op == syntax.OpLiteral {
		size = len(e.Rune)
	}
	for _, part := range e.Sub {
		size += patternSize(part)
	}
	if e.Op == syntax.OpRepeat {
		size *= max(e.Min, e.Max, 1)
	}
	return size
}

func patternError(text, problem string) error {
	return fmt.Errorf("%w: topic pattern %q: %s", ErrUnsupported, text, problem)
}

// String is the complete pattern, such as persistent://media/images/in-.*.
func (p Pattern) String() string { return p.text }

// Match reports whether the pattern includes the topic, by its complete name without partition suffix: its whole name
// without the domain matches, and it is not one of Pulsar's own topics.
func (p Pattern) Match(topic string) bool {
	if !strings.HasPrefix(topic, p.prefix) {
		return false
	}
	name, persistent := strings.CutPrefix(topic, "persistent://")
	return persistent && strings.HasPrefix(name, p.namespace+"/") && p.whole != nil && !SystemTopic(topic) &&
		p.whole.MatchString(name)
}

// SystemTopic reports whether Pulsar keeps the topic of this complete name for itself. A name that only begins with two
// underscores is a user's topic: consumers with a pattern follow it.
//
// Source: org.apache.pulsar.common.naming.SystemTopicNames.isSystemTopic.
func SystemTopic(name string) bool {
	_, name, _ = strings.Cut(name, "://")
	local := name[strings.LastIndexByte(name, '/')+1:]
	switch local {
	case "__change_events", "__transaction_buffer_snapshot", "__transaction_buffer_snapshot_segments",
		"__transaction_buffer_snapshot_indexes":
		return true
	}
	return strings.HasSuffix(local, "__transaction_pending_ack") || strings.HasPrefix(name, "pulsar/system/") &&
		(strings.HasPrefix(local, "transaction_coordinator_assign") || strings.HasPrefix(local, "__transaction_log_"))
}

// WithPatterns returns the subscription with these patterns instead of its own, sorted and distinct.
func (s Subscription) WithPatterns(patterns ...Pattern) Subscription {
	var texts []string
	for _, pattern := range patterns {
		texts = append(texts, pattern.text)
	}
	slices.Sort(texts)
	s.Patterns = slices.Compact(texts)
	return s
}
