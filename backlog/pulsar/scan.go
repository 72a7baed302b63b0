// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxTextBytes bounds keys and kept strings.
	maxTextBytes = 64 << 10
	// maxTokenBytes bounds every string and number: jsontext keeps the one that it reads, also to skip it.
	maxTokenBytes = 128 << 10
	// openNames is more than the known values of all open objects of a topic.
	openNames = 32
)

var (
	errTextTooLong  = fmt.Errorf("a name is longer than %d bytes", maxTextBytes)
	errTokenTooLong = fmt.Errorf("a string, a number or a run of blanks is longer than %d bytes", maxTokenBytes)
	errTwoValues    = errors.New("more than one JSON value")
)

// scanner reads JSON as it arrives and keeps one string or number in memory: other values are validated and skipped.
// encoding/json needs every value as a whole before it decodes it, so a topic with many consumers would be in memory
// up to four times.
type scanner struct {
	json  *jsontext.Decoder
	input *input
	// answer is charged for the input; nil for no charge.
	answer *answer
	// text has the last string that had an escape.
	text []byte
	// names are those of the known values that were read of all open objects, from first on of the innermost object;
	// first is -1 directly in a list, and outside of all objects.
	names []string
	first int
}

// decoders are those of answers that were read, for the next ones: the buffer of one takes more than what is kept of an
// answer. Nil keeps none.
type decoders chan *jsontext.Decoder

// newDecoders keeps a few, since an answer is decoded within a millisecond.
func newDecoders() decoders { return make(decoders, 8) }

func (d decoders) take() *jsontext.Decoder {
	select {
	case released := <-d:
		return released
	default:
		return new(jsontext.Decoder)
	}
}

// release keeps a decoder, without the answer that it read.
func (d decoders) release(one *jsontext.Decoder) {
	one.Reset(http.NoBody)
	select {
	case d <- one:
	default:
	}
}

func newScanner(r io.Reader) *scanner {
	charged, _ := r.(*answer)
	in := &input{from: r}
	in.json = charged.decoder()
	in.json.Reset(in, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return &scanner{json: in.json, input: in, answer: charged, names: make([]string, 0, openNames), first: -1}
}

// release gives the decoder of a scanner to another answer. Nothing may use the scanner, or a key that it read, from
// then on.
func release(s *scanner) {
	if s.answer != nil {
		s.answer.decoders.release(s.json)
	}
	s.json = nil
}

// input bounds what the decoder keeps.
type input struct {
	from io.Reader
	json *jsontext.Decoder
	read int64
	// failed is why there is no more.
	failed error
}

func (i *input) Read(p []byte) (n int, err error) {
	if i.read-i.json.InputOffset() > maxTokenBytes {
		i.failed = errTokenTooLong
		return 0, i.failed
	}
	for tries := 0; n == 0 && err == nil; tries++ {
		if n, err = i.from.Read(p); tries == 100 && n == 0 && err == nil {
			err = io.ErrNoProgress
		}
	}
	i.read += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		i.failed = err
	}
	return n, err
}

// fault is the error of the input in place of the decoder's.
func (s *scanner) fault(err error) error {
	switch {
	case err == nil:
		return nil
	case s.input.failed != nil:
		return s.input.failed
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	default:
		return syntaxFault(err)
	}
}

// syntaxFault leaves out the place, which may be long.
func syntaxFault(err error) error {
	syntax := new(jsontext.SyntacticError)
	switch {
	case !errors.As(err, &syntax):
		return err
	case errors.Is(err, jsontext.ErrDuplicateName):
		return comesTwice(backlog.Quote(syntax.JSONPointer.LastToken()))
	default:
		return syntax.Err
	}
}

// finish checks that nothing follows a value, which was read with this error.
func (s *scanner) finish(err error) error {
	if err != nil {
		return err
	}
	switch _, err = s.json.ReadToken(); {
	case err == nil:
		return errTwoValues
	case errors.Is(err, io.EOF) && s.input.failed == nil:
		return nil
	default:
		return s.fault(err)
	}
}

// peek returns the kind of the next value, or the end of the object or list.
func (s *scanner) peek() (jsontext.Kind, error) {
	kind := s.json.PeekKind()
	if strings.IndexByte(`{}[]"0tfn`, byte(kind)) >= 0 {
		return kind, nil
	}
	_, err := s.json.ReadToken()
	return 0, s.fault(err)
}

// object reads an object; read must consume the value of each key. The key is only valid until then.
func (s *scanner) object(read func(key []byte) error) error {
	return s.each('{', "an object", func() error {
		raw, err := s.json.ReadValue()
		if err != nil {
			return s.fault(err)
		}
		key, err := s.unquote(raw)
		if err != nil {
			return err
		}
		return read(key)
	})
}

// array reads an array; read must consume each value.
func (s *scanner) array(read func() error) error { return s.each('[', "a list", read) }

func (s *scanner) each(opening jsontext.Kind, want string, read func() error) error {
	kind, err := s.peek()
	if err != nil {
		return err
	}
	if kind != opening {
		return fmt.Errorf("%s where %s should be", kindOf(kind), want)
	}
	outer, names := s.first, len(s.names)
	if s.first = -1; opening == '{' {
		s.first = names
	}
	defer func() { s.first, s.names = outer, s.names[:names] }()
	_, err = s.json.ReadToken()
	for err == nil {
		if kind, err = s.peek(); kind == '}' || kind == ']' {
			_, err = s.json.ReadToken()
			return s.fault(err)
		}
		if err == nil {
			err = read()
		}
	}
	return err
}

// skip skips a value.
func (s *scanner) skip() error { return s.fault(s.json.SkipValue()) }

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

// maxExact is the largest number that a float64 represents exactly. No counter of Pulsar reaches it.
const maxExact = 1 << 53

var errTooLarge = errors.New("above 2^53, which nothing reaches that Pulsar counts")

func tooLarge(name, value string) error {
	return fmt.Errorf("%s is %s, %w", name, backlog.Quote(value), errTooLarge)
}

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

func (s *scanner) integer(name string) (number, error) {
	raw, err := s.literal(name, "0")
	if raw == nil || err != nil {
		return number{}, err
	}
	value, err := strconv.ParseInt(string(raw), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), value > maxExact, value < -maxExact:
		return number{}, tooLarge(name, string(raw))
	case err != nil:
		return number{}, fmt.Errorf("%s is a number %s", name, backlog.Quote(string(raw)))
	}
	return number{value: value, present: true}, nil
}

// field reads an object of which one integer is needed, which errors call by a name.
func field(s *scanner, key, name string) (value number, err error) {
	err = s.object(func(found []byte) (err error) {
		if string(found) != key {
			return s.skip()
		}
		value, err = s.integer(name)
		return err
	})
	return value, err
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
