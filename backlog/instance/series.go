// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is the kind of a component, as in the name of its series.
type kind string

const (
	function kind = "function"
	sink     kind = "sink"
	source   kind = "source"
)

type quantity int

const (
	received quantity = iota
	processed
	userExceptions
	systemExceptions
	calls
	busyMillis

	quantities
)

const prefix = "pulsar_"

// latency is the series of quantiles, which are not read.
const latency = "process_latency_ms"

// names are those of the series of a kind after pulsar_<kind>_, by quantity. Connectors do not time their calls.
func (k kind) names() []string {
	switch k {
	case function:
		return []string{
			"received_total", "processed_successfully_total", "user_exceptions_total", "system_exceptions_total",
			latency + "_count", latency + "_sum",
		}
	case sink, source:
		return []string{"received_total", "written_total", string(k) + "_exceptions_total", "system_exceptions_total"}
	}
	return nil
}

func (k kind) has(q quantity) bool { return int(q) < len(k.names()) }

// series is the full name.
func (k kind) series(q quantity) string { return prefix + string(k) + "_" + k.names()[q] }

// parseName returns the meaning of a series by its name, with or without _total; quantile is true for the latency
// itself.
func parseName(name string) (k kind, q quantity, quantile, ok bool) {
	name, ok = strings.CutPrefix(name, prefix)
	if !ok {
		return "", 0, false, false
	}
	word, name, _ := strings.Cut(name, "_")
	k = kind(word)
	if k == function && name == latency {
		return k, 0, true, true
	}
	name = strings.TrimSuffix(name, "_total")
	i := slices.IndexFunc(k.names(), func(one string) bool { return strings.TrimSuffix(one, "_total") == name })
	return k, quantity(i), false, i >= 0
}

// series is one line with a value that we read.
type series struct {
	kind     kind
	what     quantity
	quantile bool
	value    float64
}

var errLabels = errors.New("its labels cannot be read")

// parse parses a line. wanted is false for comments and for series that are not read; of these it only parses the name,
// since user code may write any text after it.
func parse(line []byte) (s series, wanted bool, err error) {
	if !bytes.HasPrefix(line, []byte(prefix)) {
		return series{}, false, nil
	}
	end := bytes.IndexAny(line, "{ \t")
	if end < 0 {
		return series{}, false, nil
	}
	k, q, quantile, ok := parseName(string(line[:end]))
	if !ok {
		return series{}, false, nil
	}
	s = series{kind: k, what: q}
	rest, err := s.labels(line[end:])
	if err == nil && quantile {
		// Idle quantiles are NaN; a latency without one is no summary.
		return s, s.quantile, nil
	}
	if err == nil {
		s.quantile = false
		s.value, err = number(rest)
	}
	if err == nil {
		err = q.check(s.value)
	}
	if err != nil {
		return series{}, false, fmt.Errorf("reading %s: %w", line[:end], err)
	}
	return s, true, nil
}

// processStart is a series of Prometheus' libraries for Java and Python: when the process began, in Unix seconds.
const processStart = "process_start_time_seconds"

// parseStart returns when the process began, from its line; zero for other lines and for what is no time.
func parseStart(line []byte) time.Time {
	text, is := bytes.CutPrefix(line, []byte(processStart+" "))
	if !is {
		return time.Time{}
	}
	const milli = 1000
	seconds, err := number(text)
	if err != nil || !(seconds > 0 && seconds < maxExact/milli) {
		return time.Time{}
	}
	return time.UnixMilli(int64(seconds * milli))
}

// number parses the value; a timestamp or an exemplar may follow.
func number(text []byte) (float64, error) {
	fields := bytes.Fields(text)
	if len(fields) == 0 {
		return 0, errors.New("it has no value")
	}
	return strconv.ParseFloat(string(fields[0]), 64)
}

// labels skips {a="b",c="d",} and returns the rest; it notices a quantile. Java writes the last comma, which the format
// allows.
func (s *series) labels(text []byte) (rest []byte, err error) {
	text = bytes.TrimLeft(text, " \t")
	if len(text) == 0 || text[0] != '{' {
		return text, nil
	}
	text = text[1:]
	for {
		text = bytes.TrimLeft(text, " \t,")
		if len(text) > 0 && text[0] == '}' {
			return text[1:], nil
		}
		name, after, ok := bytes.Cut(text, []byte("="))
		after = bytes.TrimLeft(after, " \t")
		if !ok || len(after) == 0 || after[0] != '"' {
			return nil, errLabels
		}
		end := closing(after[1:])
		if end < 0 {
			return nil, errLabels
		}
		s.quantile = s.quantile || string(bytes.TrimRight(name, " \t")) == "quantile"
		text = after[end+2:]
	}
}

// closing is the position of the closing quote, negative if there is none.
func closing(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// onlySeries requests only our series, not for the size: the counters of a process are read one after the other while
// the answer is written, so with fewer series less happens between two counters.
func onlySeries() string {
	names := url.Values{}
	for _, k := range []kind{function, sink, source} {
		for q := range k.names() {
			names.Add("name[]", k.series(quantity(q)))
		}
	}
	names.Add("name[]", prefix+string(function)+"_"+latency)
	names.Add("name[]", processStart)
	return names.Encode()
}
