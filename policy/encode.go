// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"
)

const (
	// stateVersion changes when a written field changes its meaning; that field then gets a new name.
	stateVersion = 1
	// maxEncodedBytes is the MaxLength of status.checkpoint. An encoded state has less than half of it.
	maxEncodedBytes = 4096
	// maxEncodedEntries and maxDecodedEntries limit the entries of a list that are written and read.
	maxEncodedEntries, maxDecodedEntries = 12, 64
	// digits: measurements are exact to two or three.
	digits  = 6
	largest = 1e15
	// fastest is more messages per second than a Function processes: a larger rate, tagged state:"rate", is wrong.
	fastest = 1e9
	maxInt  = 1_000_000
	// maxTextBytes bounds a text.
	maxTextBytes = 64
	// longest exceeds every duration of a decision.
	longest = 30 * 24 * time.Hour
)

// encoded is the written form: the version and the fields of State.
type encoded struct {
	Version int `json:"v"`
	State
}

// Encode writes the state as compact JSON for status.checkpoint: less than 4096 bytes, about 700 in use. It rounds
// numbers to six digits and times to tenths of a second, and thins long lists. An invalid number is an error.
func (s State) Encode() (string, error) {
	rounded, err := round(reflect.ValueOf(s), tags{})
	if err != nil {
		return "", fmt.Errorf("encoding the state: %w", err)
	}
	state, _ := rounded.Interface().(State)
	if err := state.check(); err != nil {
		return "", fmt.Errorf("encoding the state: %w", err)
	}
	text, err := json.Marshal(encoded{Version: stateVersion, State: state})
	if err != nil {
		return "", fmt.Errorf("encoding the state: %w", err)
	}
	if len(text) > maxEncodedBytes {
		return "", fmt.Errorf("encoding the state: it has %d bytes, at most %d are kept", len(text), maxEncodedBytes)
	}
	return string(text), nil
}

// DecodeState reads what Encode wrote, in this version or another. It skips unknown fields and parts with invalid
// numbers. The error names the skipped parts; the state is usable in any case.
func DecodeState(text string) (State, error) {
	if len(text) > maxEncodedBytes {
		return State{}, fmt.Errorf("decoding the checkpoint: it has %d bytes, at most %d are read", len(text),
			maxEncodedBytes)
	}
	var parts map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &parts); err != nil {
		return State{}, fmt.Errorf("decoding the checkpoint: %w", err)
	}
	var state State
	var leftOut []error
	if version := string(parts["v"]); version != strconv.Itoa(stateVersion) {
		leftOut = append(leftOut, fmt.Errorf("version %q is not %d", version, stateVersion))
	}
	into := reflect.ValueOf(&state).Elem()
	for i := range into.NumField() {
		name, _, _ := strings.Cut(into.Type().Field(i).Tag.Get("json"), ",")
		part, found := parts[name]
		if !found {
			continue
		}
		before := state
		if err := decodePart(part, into.Field(i), into.Type().Field(i)); err != nil {
			state = before
			leftOut = append(leftOut, err)
		} else if err := state.check(); err != nil {
			state = before
			leftOut = append(leftOut, err)
		}
	}
	if len(leftOut) > 0 {
		return state, fmt.Errorf("decoding the checkpoint: leaving out: %w", errors.Join(leftOut...))
	}
	return state, nil
}

// decodePart decodes one field of a state.
func decodePart(text json.RawMessage, into reflect.Value, field reflect.StructField) error {
	decoded := reflect.New(into.Type())
	if err := json.Unmarshal(text, decoded.Interface()); err != nil {
		return err
	}
	tag := tagsOf(field, true)
	if _, err := round(decoded.Elem(), tag); err != nil {
		return err
	}
	into.Set(decoded.Elem())
	return nil
}

// tags are the bounds of a field. strict refuses a number that is too large instead of limiting it.
type tags struct {
	name                 string
	signed, rate, strict bool
}

func tagsOf(field reflect.StructField, strict bool) tags {
	kind := field.Tag.Get("state")
	return tags{name: field.Name, signed: kind == "signed", rate: kind == "rate", strict: strict}
}

func (t tags) largest() float64 {
	if t.rate {
		return fastest
	}
	return largest
}

// round returns a deep copy of a value, rounded and within bounds.
func round(v reflect.Value, tag tags) (reflect.Value, error) {
	after := reflect.New(v.Type()).Elem()
	switch value := v.Interface().(type) {
	case time.Time:
		return after, roundTime(after, value, tag)
	case time.Duration:
		if value < 0 || value > longest {
			return after, fmt.Errorf("%s lasts %s", tag.name, value)
		}
		after.SetInt(int64(value.Round(time.Second)))
		return after, nil
	}
	switch v.Kind() {
	case reflect.Bool:
		after.SetBool(v.Bool())
	case reflect.String:
		if len(v.String()) > maxTextBytes {
			return after, fmt.Errorf("%s has %d bytes", tag.name, len(v.String()))
		}
		after.SetString(v.String())
	case reflect.Float64:
		return after, roundFloat(after, v.Float(), tag)
	case reflect.Int, reflect.Int8, reflect.Int32, reflect.Int64:
		return after, roundInt(after, v.Int(), tag)
	case reflect.Pointer:
		if v.IsNil() {
			return after, nil
		}
		pointed, err := round(v.Elem(), tag)
		if err != nil {
			return after, err
		}
		after.Set(reflect.New(v.Type().Elem()))
		after.Elem().Set(pointed)
	case reflect.Slice:
		return roundList(v, tag)
	case reflect.Struct:
		return after, roundFields(after, v, tag)
	default:
		return after, fmt.Errorf("%s is of kind %s, which a state does not have", tag.name, v.Kind())
	}
	return after, nil
}

func roundTime(into reflect.Value, value time.Time, tag tags) error {
	if year := value.Year(); !value.IsZero() && (year < 2000 || year >= 2200) {
		return fmt.Errorf("%s is in the year %d", tag.name, year)
	}
	into.Set(reflect.ValueOf(value.UTC().Round(time.Second / 10)))
	return nil
}

func roundFloat(into reflect.Value, value float64, tag tags) error {
	switch {
	case math.IsNaN(value) || (value < 0 && !tag.signed) || (tag.strict && math.Abs(value) > tag.largest()):
		return fmt.Errorf("%s is %g", tag.name, value)
	case math.Abs(value) > tag.largest():
		value = math.Copysign(tag.largest(), value)
	}
	// Rounding by a power of ten would leave a binary fraction with more digits.
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', digits, 64), 64)
	if err != nil {
		return fmt.Errorf("%s: %w", tag.name, err)
	}
	into.SetFloat(rounded)
	return nil
}

func roundInt(into reflect.Value, value int64, tag tags) error {
	if (value < 0 && !tag.signed) || (tag.strict && (value > maxInt || value < -maxInt)) {
		return fmt.Errorf("%s is %d", tag.name, value)
	}
	into.SetInt(max(-maxInt, min(value, maxInt)))
	return nil
}

func roundFields(into, from reflect.Value, tag tags) error {
	for i := range from.NumField() {
		field := from.Type().Field(i)
		if !field.IsExported() {
			return fmt.Errorf("%s is not exported, so the checkpoint would lose it", field.Name)
		}
		value, err := round(from.Field(i), tagsOf(field, tag.strict))
		if err != nil {
			return err
		}
		into.Field(i).Set(value)
	}
	return nil
}

func roundList(from reflect.Value, tag tags) (reflect.Value, error) {
	if tag.strict && from.Len() > maxDecodedEntries {
		return from, fmt.Errorf("%s has %d entries", tag.name, from.Len())
	}
	if list, ok := from.Interface().([]ReplicasAt); ok && !tag.strict {
		from = reflect.ValueOf(compacted(list))
	}
	kept := from.Len()
	if !tag.strict {
		kept = min(kept, maxEncodedEntries)
	}
	after := reflect.MakeSlice(from.Type(), kept, kept)
	for i := range kept {
		// Keep the first, the last, and evenly spaced ones in between.
		value, err := round(from.Index(i*(from.Len()-1)/max(1, kept-1)), tags{name: tag.name, strict: tag.strict})
		if err != nil {
			return after, err
		}
		after.Index(i).Set(value)
	}
	return after, nil
}

// compacted merges neighbors of a long window. It keeps the larger number until the later time, so replicas go down
// later and never earlier.
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
