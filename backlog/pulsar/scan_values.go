// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"
)

// maxExact is the largest number that a float64 represents exactly. No counter of Pulsar reaches it.
const maxExact = 1 << 53

var errTooLarge = errors.New("above 2^53, which nothing reaches that Pulsar counts")

// peekOnce is peek for the value of a name that may come once.
func (s *scanner) peekOnce(name string) (byte, error) {
	if err := s.once(name); err != nil {
		return 0, err
	}
	return s.peek()
}

// null consumes a null for the value of a name, and reports whether there was one.
func (s *scanner) null(name string) (bool, error) {
	c, err := s.peekOnce(name)
	if err != nil || c != 'n' {
		return false, err
	}
	return true, s.word("null")
}

// number is an integer that may be missing.
type number struct {
	value   int64
	present bool
}

// integer reads an integer or null.
func (s *scanner) integer(name string) (number, error) {
	if null, err := s.null(name); null || err != nil {
		return number{}, err
	}
	c, err := s.peek()
	if err != nil {
		return number{}, err
	}
	if c != '-' && (c < '0' || c > '9') {
		return number{}, fmt.Errorf("%s is %s", name, kindOf(c))
	}
	s.text = s.text[:0]
	if err := s.digits(&s.text); err != nil {
		return number{}, err
	}
	value, ok := parseInteger(s.text)
	switch {
	case !ok && isInteger(s.text) && len(s.text) < maxDigits, value > maxExact, value < -maxExact:
		return number{}, fmt.Errorf("%s is %s, %w", name, s.text, errTooLarge)
	case !ok:
		return number{}, fmt.Errorf("%s is a number %s", name, s.text)
	}
	return number{value: value, present: true}, nil
}

// parseInteger accepts integers of 64 bits.
func parseInteger(text []byte) (int64, bool) {
	digits, negative := text, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, negative = digits[1:], true
	}
	var value int64
	for _, c := range digits {
		digit := int64(c - '0')
		if c < '0' || c > '9' || value > (math.MaxInt64-digit)/10 {
			return 0, false
		}
		value = value*10 + digit
	}
	if negative {
		value = -value
	}
	return value, len(digits) > 0
}

// isInteger reports whether the text has only digits; parseInteger refuses more than 64 bits.
func isInteger(text []byte) bool {
	return len(bytes.Trim(bytes.TrimPrefix(text, []byte("-")), "0123456789")) == 0
}

// boolean reads true, false or null, which is false.
func (s *scanner) boolean(name string) (bool, error) {
	c, err := s.peekOnce(name)
	switch {
	case err != nil:
		return false, err
	case c == 't':
		return true, s.word("true")
	case c == 'f':
		return false, s.word("false")
	case c == 'n':
		return false, s.word("null")
	default:
		return false, fmt.Errorf("%s is %s", name, kindOf(c))
	}
}

// textOrNull reads a string or null, which is empty. It is only valid until the next string.
func (s *scanner) textOrNull(name string) ([]byte, error) {
	c, err := s.peekOnce(name)
	switch {
	case err != nil:
		return nil, err
	case c == '"':
		return s.string()
	case c == 'n':
		return nil, s.word("null")
	default:
		return nil, fmt.Errorf("%s is %s", name, kindOf(c))
	}
}

// timestamp reads a time; the zero time if its format is unknown.
func (s *scanner) timestamp(name string) (moment time.Time, err error) {
	words, err := s.textOrNull(name)
	if err != nil || moment.UnmarshalText(words) != nil {
		return time.Time{}, err
	}
	return moment.UTC(), nil
}
