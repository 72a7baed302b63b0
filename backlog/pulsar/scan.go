// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxDepth bounds nested values; Pulsar's answers have less than 10 levels.
	maxDepth = 100
	// openNames is more than the known values of all open objects of a topic.
	openNames = 32
)

var (
	errTooDeep   = fmt.Errorf("values are nested more than %d deep", maxDepth)
	errTwoValues = errors.New("more than one JSON value")
)

// scanner reads JSON as it arrives and keeps at most scanBytes and one string in memory: other values are validated and
// skipped. encoding/json needs every value as a whole before it decodes it, so a topic with many consumers would be in
// memory up to four times. It accepts what encoding/json accepts, up to maxDepth and maxTextBytes (FuzzScanner).
type scanner struct {
	lexer

	// answer is charged for the input; nil for no charge.
	answer *answer
	depth  int
	// text has the last string.
	text []byte
	// names are those of the known values that were read of all open objects, from first on of the innermost object;
	// first is -1 directly in a list, and outside of all objects.
	names []string
	first int
}

func newScanner(r io.Reader) *scanner {
	charged, _ := r.(*answer)
	return &scanner{
		lexer:  lexer{input: input{from: r, buffer: make([]byte, scanBytes)}},
		answer: charged, names: make([]string, 0, openNames), first: -1,
	}
}

// finish checks that nothing follows a value, which was read with this error.
func (s *scanner) finish(err error) error {
	if err != nil {
		return err
	}
	_, err = s.peek()
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF) && s.at == s.end:
		return nil
	case err == nil:
		return errTwoValues
	default:
		return err
	}
}

// object reads an object; read must consume the value of each key. The key is only valid until then.
func (s *scanner) object(read func(key []byte) error) error {
	return s.list('{', '}', "an object", func() error {
		if c, err := s.peek(); err != nil || c != '"' {
			return cmpError(err, unexpected(c, "a key"))
		}
		key, err := s.string()
		if err != nil {
			return err
		}
		if c, err := s.peek(); err != nil || c != ':' {
			return cmpError(err, unexpected(c, `":"`))
		}
		s.at++
		return read(key)
	})
}

// once fails if the innermost object had a value of this name before: it is not known which of the two is true.
func (s *scanner) once(name string) error {
	if s.first < 0 {
		return nil
	}
	if slices.Contains(s.names[s.first:], name) {
		return comesTwice(name)
	}
	s.names = append(s.names, name)
	return nil
}

func comesTwice(name string) error { return fmt.Errorf("%s comes twice", name) }

// distinct skips a value, and fails if an object in it has a key twice.
func (s *scanner) distinct() error {
	c, err := s.peek()
	switch {
	case err != nil:
		return err
	case c == '[':
		return s.array(s.distinct)
	case c != '{':
		return s.skip()
	}
	keys := map[string]bool{}
	return s.object(func(key []byte) error {
		name := validText(key)
		if keys[name] {
			return comesTwice(backlog.Quote(name))
		}
		keys[name] = true
		return s.distinct()
	})
}

// array reads an array; read must consume each value.
func (s *scanner) array(read func() error) error { return s.list('[', ']', "a list", read) }

func (s *scanner) list(opening, closing byte, kind string, read func() error) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != opening {
		return fmt.Errorf("%s where %s should be", kindOf(c), kind)
	}
	s.at++
	if s.depth++; s.depth > maxDepth {
		return errTooDeep
	}
	outer, names := s.first, len(s.names)
	if s.first = -1; opening == '{' {
		s.first = names
	}
	defer func() { s.depth, s.first, s.names = s.depth-1, outer, s.names[:names] }()
	if c, err = s.peek(); err != nil {
		return err
	}
	if c == closing {
		s.at++
		return nil
	}
	for {
		if err := read(); err != nil {
			return err
		}
		switch c, err := s.peek(); {
		case err != nil:
			return err
		case c == closing:
			s.at++
			return nil
		case c != ',':
			return unexpected(c, `","`)
		}
		s.at++
	}
}

func cmpError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// kindOf names the value that begins with c.
func kindOf(c byte) string {
	switch c {
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

// skip skips a value of any length.
func (s *scanner) skip() error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	switch c {
	case '{':
		return s.object(func([]byte) error { return s.skip() })
	case '[':
		return s.array(s.skip)
	case '"':
		return s.quoted(nil)
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.digits(nil)
	}
}

// string reads a string into text.
func (s *scanner) string() ([]byte, error) {
	if s.plain() {
		return s.text, nil
	}
	s.text = s.text[:0]
	if err := s.quoted(&s.text); err != nil {
		return nil, err
	}
	return s.text, nil
}

// plain reads a string that is complete in the buffer and has no escapes, as nearly all strings.
func (s *scanner) plain() bool {
	for i := s.at + 1; i < s.end; i++ {
		switch c := s.buffer[i]; {
		case c == '"':
			s.text = append(s.text[:0], s.buffer[s.at+1:i]...)
			s.at = i + 1
			return true
		case c == '\\' || c < ' ':
			return false
		}
	}
	return false
}

// validText makes a string of bytes that are only valid until the next read; invalid UTF-8 is replaced.
func validText(text []byte) string { return strings.ToValidUTF8(string(text), "\uFFFD") }
