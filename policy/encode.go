// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

const (
	// stateVersion changes when a written field changes its meaning; that field then gets a new name.
	stateVersion = 1
	// maxEncodedBytes is the MaxLength of status.workingCheckpoint. An encoded state has about two thirds of it at most.
	maxEncodedBytes = 6144
	// maxEncodedEntries and maxDecodedEntries limit the entries of a list that are written and read.
	maxEncodedEntries, maxDecodedEntries = 12, 64
	// digits: measurements are exact to two or three.
	digits  = 5
	largest = 1e15
	// fastest is more messages per second than a Function processes.
	fastest = 1e9
	maxInt  = 1_000_000
	// recordedPulses are the most that a forecast counts.
	recordedPulses = 40
	// maxTextBytes bounds a text.
	maxTextBytes = 64
	// maxAhead bounds how far ahead a period may end.
	maxAhead = time.Hour
)

// encoded is the written form: the version and the fields of State.
type encoded struct {
	Version int `json:"v"`
	State
}

// Encode writes the state for status.workingCheckpoint: compact JSON in base64, which nothing but the controller reads.
// It has less than 6144 bytes, about 1100 in use. Encode rounds numbers to five digits and times to tenths of a second,
// and thins long lists. An invalid number is an error.
func (s State) Encode() (string, error) {
	s.Recommendations = compacted(s.Recommendations)
	s.Raises = Raises{Wanted: compacted(s.Raises.Wanted), Decided: compacted(s.Raises.Decided)}
	if s.Arrivals != nil {
		arrivals := *s.Arrivals
		arrivals.Past = thinned(arrivals.Past)
		s.Arrivals = &arrivals
	}
	exact, err := json.Marshal(encoded{Version: stateVersion, State: s})
	if err = errors.Join(err, s.check()); err != nil {
		return "", fmt.Errorf("encoding the state: %w", err)
	}
	rounded, err := checkpoint{}.rounded(exact)
	text := base64.StdEncoding.EncodeToString(rounded)
	if err == nil && len(text) > maxEncodedBytes {
		err = fmt.Errorf("it has %d bytes, at most %d are kept", len(text), maxEncodedBytes)
	}
	if err != nil {
		return "", fmt.Errorf("encoding the state: %w", err)
	}
	return text, nil
}

// DecodeState reads what Encode wrote, in this version or another. It skips unknown fields and parts with invalid
// numbers. No time is after now, which may be that of another clock, and no period ends more than an hour later. The
// error names the skipped parts; the state is usable in any case.
func DecodeState(text string, now time.Time) (State, error) {
	if len(text) > maxEncodedBytes {
		return State{}, fmt.Errorf("decoding the checkpoint: it has %d bytes, at most %d are read", len(text),
			maxEncodedBytes)
	}
	var parts map[string]json.RawMessage
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &parts)
	}
	if err != nil {
		return State{}, fmt.Errorf("decoding the checkpoint: %w", err)
	}
	var state State
	var leftOut []error
	if version := string(parts["v"]); version != strconv.Itoa(stateVersion) {
		leftOut = append(leftOut, fmt.Errorf("version %q is not %d", version, stateVersion))
	}
	delete(parts, "v")
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		with, err := state.withPart(name, parts[name], now)
		if err != nil {
			leftOut = append(leftOut, err)
			continue
		}
		state = with
	}
	if len(leftOut) > 0 {
		return state, fmt.Errorf("decoding the checkpoint: leaving out: %w", errors.Join(leftOut...))
	}
	return state, nil
}

// withPart is the state with one more of its fields.
func (s State) withPart(name string, text json.RawMessage, now time.Time) (State, error) {
	part, err := json.Marshal(map[string]json.RawMessage{name: text})
	if err == nil {
		part, err = checkpoint{readAt: now}.rounded(part)
	}
	if err == nil {
		err = json.Unmarshal(part, &s)
	}
	if err != nil {
		return s, err
	}
	return s, s.check()
}

// CeilingIn is the ceiling of a plateau in what Encode wrote; 0 for none.
func CeilingIn(text string) int32 {
	var known struct {
		Plateau Plateau `json:"plateau"`
	}
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !bytes.Contains(decoded, []byte(`"stage"`)) || json.Unmarshal(decoded, &known) != nil {
		return 0
	}
	return known.Plateau.Ceiling()
}

// checkpoint is when a checkpoint is read; zero while it is written. A number that is too large is limited when it is
// written, and refused when it is read.
type checkpoint struct{ readAt time.Time }

// rounded is a JSON object with numbers and times rounded and within bounds, by their names.
func (c checkpoint) rounded(text []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	value, err := c.value("", value)
	if err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

func (c checkpoint) value(name string, value any) (after any, err error) {
	switch v := value.(type) {
	case map[string]any:
		for key, part := range v {
			if v[key], err = c.value(key, part); err != nil {
				return nil, err
			}
		}
	case []any:
		if len(v) > maxDecodedEntries {
			return nil, fmt.Errorf("%s has %d entries", name, len(v))
		}
		for i, entry := range v {
			if v[i], err = c.value(name, entry); err != nil {
				return nil, err
			}
		}
	case string:
		return c.text(name, v)
	case json.Number:
		return c.number(name, v)
	}
	return value, nil
}

// text is a time, or another text.
func (c checkpoint) text(name, text string) (string, error) {
	at, noTime := time.Parse(time.RFC3339Nano, text)
	switch {
	case len(text) > maxTextBytes:
		return "", fmt.Errorf("%s has %d bytes", name, len(text))
	case noTime != nil:
		return text, nil //nolint:nilerr // it is another text
	case at.Year() < 2000 || at.Year() >= 2200:
		return "", fmt.Errorf("%s is in the year %d", name, at.Year())
	}
	latest := c.readAt
	if name == "until" || name == "quiet" {
		latest = latest.Add(maxAhead)
	}
	if !c.readAt.IsZero() && at.After(latest) {
		at = latest
	}
	return at.UTC().Round(time.Second / 10).Format(time.RFC3339Nano), nil
}

// number is a number that is not negative, except for a direction.
func (c checkpoint) number(name string, number json.Number) (any, error) {
	value, err := number.Float64()
	most := float64(largest)
	switch name {
	case "fast", "peak", "each", "r", "rate":
		most = fastest
	case "n", "from", "replicas", "polls":
		most = maxInt
	case "foreseen", "expected":
		most = recordedPulses
	}
	least := 0.0
	if name == "surprise" || name == "failed" {
		least = -1
	}
	if err != nil || value < least || value > most && !c.readAt.IsZero() {
		return nil, fmt.Errorf("%s is %s", name, number)
	}
	if _, err := number.Int64(); err == nil && value <= most {
		return number, nil
	}
	return strconv.ParseFloat(strconv.FormatFloat(min(value, most), 'g', digits, 64), 64)
}

// thinned keeps the first entry of a long list, the last, and evenly spaced ones in between.
func thinned[T any](list []T) []T {
	if len(list) <= maxEncodedEntries {
		return list
	}
	after := make([]T, maxEncodedEntries)
	for i := range after {
		after[i] = list[i*(len(list)-1)/(maxEncodedEntries-1)]
	}
	return after
}

// compacted merges neighbors of a long window. It keeps the first number until the later time, so replicas change later
// and never earlier.
func compacted(window []ReplicasAt) []ReplicasAt {
	if len(window) <= maxEncodedEntries {
		return window
	}
	after := make([]ReplicasAt, maxEncodedEntries)
	for i := range after {
		first, last := i*len(window)/maxEncodedEntries, (i+1)*len(window)/maxEncodedEntries-1
		after[i] = ReplicasAt{At: window[last].At, Replicas: window[first].Replicas}
	}
	return after
}

const (
	// minRate of a capacity and minCoverage of its coverage keep logarithms and quotients finite.
	minRate, minCoverage = 1e-9, 1e-6
	// maxVariance is the variance after 47 years without an observation.
	maxVariance = 1e4
)

// check validates the numbers that a decision divides by.
func (s State) check() error {
	if c := s.Capacity; c != nil {
		switch {
		case c.MessagesPerSecond < minRate:
			return fmt.Errorf("a replica processes %g messages per second", c.MessagesPerSecond)
		case c.Variance > maxVariance:
			return fmt.Errorf("the variance is %g", c.Variance)
		case c.Coverage > 1 || (c.Coverage > 0 && c.Coverage < minCoverage):
			return fmt.Errorf("the coverage is %g", c.Coverage)
		}
	}
	switch p := s.Plateau; {
	case p.Stage != "" && p.Stage != Verifying && p.Ceiling() == 0:
		return fmt.Errorf("the plateau is %s, with a ceiling of %d", p.Stage, p.Replicas)
	case p.Stage != "" && (p.Reference.Replicas < 1 || p.Each < minRate):
		return fmt.Errorf("%g replicas that each process %g messages per second were added to", p.Reference.Replicas, p.Each)
	}
	return nil
}
