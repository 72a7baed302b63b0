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
	// stateVersion changes when a field that is written means something else than before; it takes another name then.
	stateVersion = 1
	// mostEncoded is the MaxLength of status.checkpoint; what is written has less than half of it.
	mostEncoded = 4096
	// mostListed is how many entries of a list are written, and mostDecoded how many are read.
	mostListed, mostDecoded = 12, 64
	// digits are enough: what is decided on is measured to two or three.
	digits   = 6
	largest  = 1e15
	mostInts = 1_000_000
	// mostText is the most bytes of a text.
	mostText = 64
	// longest is a duration that no part of a decision comes near to.
	longest = 30 * 24 * time.Hour
)

// encoded is the written form: the fields of State beside the version.
type encoded struct {
	Version int `json:"v"`
	State
}

// Encode writes the state as compact JSON of less than 4096 bytes, about 700 in use, for status.checkpoint: numbers
// with six digits, times with tenths of a second, and long lists thinned out. A state with a number that none can have
// is an error.
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
	if len(text) > mostEncoded {
		return "", fmt.Errorf("encoding the state: it has %d bytes, at most %d are kept", len(text), mostEncoded)
	}
	return string(text), nil
}

// DecodeState reads what Encode wrote, in this version or another, as far as it is understood: a part with a number
// that no state has is left out, and so are fields that are not known. The error names what was left out; the state is
// good in any case.
func DecodeState(text string) (State, error) {
	if len(text) > mostEncoded {
		return State{}, fmt.Errorf("decoding the checkpoint: it has %d bytes, at most %d are read", len(text), mostEncoded)
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
	tag := tags{name: field.Name, signed: field.Tag.Get("state") == "signed", strict: true}
	if _, err := round(decoded.Elem(), tag); err != nil {
		return err
	}
	into.Set(decoded.Elem())
	return nil
}

// tags say what a field may hold: strict refuses what is too large rather than cutting it.
type tags struct {
	name           string
	signed, strict bool
}

// round returns a copy of a value with all that it consists of rounded and within bounds, and nothing of it shared.
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
		if len(v.String()) > mostText {
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
	case math.IsNaN(value) || (value < 0 && !tag.signed) || (tag.strict && math.Abs(value) > largest):
		return fmt.Errorf("%s is %g", tag.name, value)
	case math.Abs(value) > largest:
		value = math.Copysign(largest, value)
	}
	// The shortest text with so many digits is what is written: rounding by a power of ten would leave the binary rest.
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', digits, 64), 64)
	if err != nil {
		return fmt.Errorf("%s: %w", tag.name, err)
	}
	into.SetFloat(rounded)
	return nil
}

func roundInt(into reflect.Value, value int64, tag tags) error {
	if (value < 0 && !tag.signed) || (tag.strict && (value > mostInts || value < -mostInts)) {
		return fmt.Errorf("%s is %d", tag.name, value)
	}
	into.SetInt(max(-mostInts, min(value, mostInts)))
	return nil
}

func roundFields(into, from reflect.Value, tag tags) error {
	for i := range from.NumField() {
		field := from.Type().Field(i)
		if !field.IsExported() {
			return fmt.Errorf("%s is not exported, so it would be lost", field.Name)
		}
		value, err := round(from.Field(i),
			tags{name: field.Name, signed: field.Tag.Get("state") == "signed", strict: tag.strict})
		if err != nil {
			return err
		}
		into.Field(i).Set(value)
	}
	return nil
}

func roundList(from reflect.Value, tag tags) (reflect.Value, error) {
	if tag.strict && from.Len() > mostDecoded {
		return from, fmt.Errorf("%s has %d entries", tag.name, from.Len())
	}
	if list, ok := from.Interface().([]ReplicasAt); ok && !tag.strict {
		from = reflect.ValueOf(thinned(list))
	}
	kept := from.Len()
	if !tag.strict {
		kept = min(kept, mostListed)
	}
	after := reflect.MakeSlice(from.Type(), kept, kept)
	for i := range kept {
		// The first and the last stay, and those in between evenly.
		value, err := round(from.Index(i*(from.Len()-1)/max(1, kept-1)), tags{name: tag.name, strict: tag.strict})
		if err != nil {
			return after, err
		}
		after.Index(i).Set(value)
	}
	return after, nil
}

// thinned merges neighbours of a window that has many: the larger is held for as long as the later, so that replicas go
// down later and never earlier.
func thinned(window []ReplicasAt) []ReplicasAt {
	if len(window) <= mostListed {
		return window
	}
	after := make([]ReplicasAt, mostListed)
	for i := range after {
		first, last := i*len(window)/mostListed, (i+1)*len(window)/mostListed-1
		after[i] = ReplicasAt{At: window[last].At, Replicas: window[first].Replicas}
	}
	return after
}

const (
	// leastRate of a capacity and leastCovered of its coverage, below which logarithms and quotients are no numbers.
	leastRate, leastCovered = 1e-9, 1e-6
	// mostVariance is what 47 years without an observation leave.
	mostVariance = 1e4
)

// check what a decision divides by.
func (s State) check() error {
	if c := s.Capacity; c != nil {
		switch {
		case c.MessagesPerSecond < leastRate:
			return fmt.Errorf("a replica processes %g messages per second", c.MessagesPerSecond)
		case c.Variance > mostVariance:
			return fmt.Errorf("the variance is %g", c.Variance)
		case c.Coverage > 1 || (c.Coverage > 0 && c.Coverage < leastCovered):
			return fmt.Errorf("the coverage is %g", c.Coverage)
		}
	}
	switch p := s.Plateau; {
	case p.Open && (p.From < 1 || p.Each < leastRate):
		return fmt.Errorf("%g replicas that each process %g messages per second were added to", p.From, p.Each)
	case p.Ceiling > 0 && p.BeforeN < 1:
		return fmt.Errorf("%g replicas showed a ceiling", p.BeforeN)
	}
	return nil
}
