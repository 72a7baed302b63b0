// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// maxExact is the largest number that a float64 represents exactly. No counter of Pulsar reaches it.
const maxExact = 1 << 53

var errTooLarge = errors.New("above 2^53, which nothing reaches that Pulsar counts")

// unquote returns the text of a string, which is only valid until the next read. Invalid UTF-8 may remain.
func (s *scanner) unquote(raw []byte) ([]byte, error) {
	if len(raw) > maxTextBytes {
		return nil, errTextTooLong
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1], nil
	}
	s.text, _ = jsontext.AppendUnquote(s.text[:0], raw) // its only error is invalid UTF-8, which it replaces
	return s.text, nil
}

// validText makes a string of bytes that are only valid until the next read; invalid UTF-8 is replaced.
func validText(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }

// null consumes a null for the value of a name, and reports whether there was one.
func (s *scanner) null(name string) (bool, error) {
	if err := s.once(name); err != nil {
		return false, err
	}
	kind, err := s.peek()
	if err != nil || kind != 'n' {
		return false, err
	}
	return true, s.skip()
}

// literal reads the value of a name that may come once: one of these kinds, or null, which is nil.
func (s *scanner) literal(name, kinds string) ([]byte, error) {
	if null, err := s.null(name); null || err != nil {
		return nil, err
	}
	kind, err := s.peek()
	if err != nil {
		return nil, err
	}
	if strings.IndexByte(kinds, byte(kind)) < 0 {
		return nil, fmt.Errorf("%s is %s", name, kindOf(kind))
	}
	raw, err := s.json.ReadValue()
	return raw, s.fault(err)
}

// number is an integer that may be missing.
type number struct {
	value   int64
	present bool
}

// integer reads an integer or null.
func (s *scanner) integer(name string) (number, error) {
	raw, err := s.literal(name, "0")
	if raw == nil || err != nil {
		return number{}, err
	}
	value, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), value > maxExact, value < -maxExact:
		return number{}, fmt.Errorf("%s is %s, %w", name, backlog.Quote(string(raw)), errTooLarge)
	case err != nil:
		return number{}, fmt.Errorf("%s is a number %s", name, backlog.Quote(string(raw)))
	}
	return number{value: value, present: true}, nil
}

// boolean reads true, false or null, which is false.
func (s *scanner) boolean(name string) (bool, error) {
	raw, err := s.literal(name, "tf")
	return string(raw) == "true", err
}

// textOrNull reads a string or null, which is empty. It is only valid until the next read.
func (s *scanner) textOrNull(name string) ([]byte, error) {
	raw, err := s.literal(name, `"`)
	if raw == nil || err != nil {
		return nil, err
	}
	return s.unquote(raw)
}

// timestamp reads a time; the zero time if its format is unknown.
func (s *scanner) timestamp(name string) (moment time.Time, err error) {
	words, err := s.textOrNull(name)
	if err != nil || moment.UnmarshalText(words) != nil {
		return time.Time{}, err
	}
	return moment.UTC(), nil
}

// kindOf names a kind of value for people.
func kindOf(kind jsontext.Kind) string {
	switch kind {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		return "a string"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
