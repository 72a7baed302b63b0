// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	// stateVersion changes when a written field changes its meaning; that field then gets a new name.
	stateVersion = 1
	// maxEncodedBytes is the MaxLength of status.workingCheckpoint. An encoded state has about two thirds of it at most.
	maxEncodedBytes = 6144
	// maxEncodedEntries limits the entries of a window that are written.
	maxEncodedEntries = 12
	// digits: measurements are exact to two or three.
	digits  = 5
	largest = 1e15
	maxInt  = 1_000_000
)

// encoded is the written form: the version and the fields of State.
type encoded struct {
	Version int `json:"v"`
	State
}

// Encode writes the state for status.workingCheckpoint: compact JSON in base64, of which other readers take only
// CeilingIn. It has less than 6144 bytes, about 1100 in use. Encode rounds numbers to five digits and times to tenths
// of a second, and shortens long windows. An invalid number is an error.
func (s State) Encode() (string, error) {
	s.Recommendations = compacted(s.Recommendations)
	s.Raises = Raises{Wanted: compacted(s.Raises.Wanted), Decided: compacted(s.Raises.Decided)}
	written, err := json.Marshal(encoded{Version: stateVersion, State: s},
		json.OmitZeroStructFields(true), rounding())
	text := base64.StdEncoding.EncodeToString(written)
	if err = errors.Join(err, s.check()); err == nil && len(text) > maxEncodedBytes {
		err = fmt.Errorf("it has %d bytes, at most %d are kept", len(text), maxEncodedBytes)
	}
	if err != nil {
		return "", fmt.Errorf("encoding the state: %w", err)
	}
	return text, nil
}

// rounding writes numbers and times with the precision of a checkpoint, and limits numbers that are too large.
func rounding() json.Options {
	return json.WithMarshalers(json.JoinMarshalers(
		json.MarshalToFunc(func(to *jsontext.Encoder, number float64) error {
			if number < 0 || math.IsNaN(number) {
				return fmt.Errorf("a number is %g", number)
			}
			if number = min(number, largest); number != math.Trunc(number) {
				number, _ = strconv.ParseFloat(strconv.FormatFloat(number, 'g', digits, 64), 64) // it is a number
			}
			return to.WriteToken(jsontext.Float(number))
		}),
		json.MarshalToFunc(func(to *jsontext.Encoder, number int32) error {
			return to.WriteToken(jsontext.Int(int64(min(number, maxInt))))
		}),
		json.MarshalToFunc(func(to *jsontext.Encoder, period time.Duration) error {
			return to.WriteToken(jsontext.Int(int64(period)))
		}),
		json.MarshalToFunc(func(to *jsontext.Encoder, at time.Time) error {
			return to.WriteToken(jsontext.String(at.UTC().Round(time.Second / 10).Format(time.RFC3339Nano)))
		}),
	))
}

// bounding reads numbers from 0 to the largest of their type, and no time after now.
func bounding(now time.Time) json.Options {
	return json.WithUnmarshalers(json.JoinUnmarshalers(
		upTo[float64](largest), upTo[int32](maxInt), upTo[time.Duration](largest),
		json.UnmarshalFromFunc(func(from *jsontext.Decoder, at *time.Time) error {
			text, err := from.ReadToken()
			if err != nil {
				return err
			}
			read, err := time.Parse(time.RFC3339Nano, text.String())
			if read.After(now) {
				read = now
			}
			*at = read.UTC().Round(time.Second / 10)
			return err
		}),
	))
}

func upTo[T float64 | int32 | time.Duration](most float64) *json.Unmarshalers {
	return json.UnmarshalFunc(func(text []byte, number *T) error {
		read, err := strconv.ParseFloat(string(text), 64)
		if err != nil || read < 0 || read > most {
			return fmt.Errorf("%s is no number from 0 to %g", text, most)
		}
		*number = T(read)
		return nil
	})
}

// DecodeState reads what Encode wrote, in this version or another. It skips unknown fields and parts with invalid
// numbers. No time is after now, which may be that of another clock. The error names the skipped parts; the state is
// usable in any case.
func DecodeState(text string, now time.Time) (State, error) {
	if len(text) > maxEncodedBytes {
		return State{}, fmt.Errorf("decoding the checkpoint: it has %d bytes, at most %d are read", len(text),
			maxEncodedBytes)
	}
	var parts map[string]jsontext.Value
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

func (s State) withPart(name string, text jsontext.Value, now time.Time) (State, error) {
	part, err := json.Marshal(map[string]jsontext.Value{name: text})
	if err == nil {
		err = json.Unmarshal(part, &s, bounding(now))
	}
	return s, errors.Join(err, s.check())
}

// CeilingIn is the ceiling of a plateau in what Encode wrote; 0 for none, as in most.
func CeilingIn(text string) int32 {
	decoded, err := base64.StdEncoding.DecodeString(text)
	if err != nil || !bytes.Contains(decoded, []byte(`"stage"`)) {
		return 0
	}
	state, _ := DecodeState(text, time.Time{}) // a part that is unusable has no ceiling
	return state.Plateau.Ceiling()
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
