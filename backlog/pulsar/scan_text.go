// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// scanBytes is the part of an answer that is in memory: a slim answer has about 3 KB for each partition.
	scanBytes = 8 << 10
	// maxTextBytes bounds keys and kept strings; other strings may be of any length.
	maxTextBytes = 64 << 10
)

var errTextTooLong = fmt.Errorf("a name is longer than %d bytes", maxTextBytes)

// input is the incoming text, one buffer at a time.
type input struct {
	from io.Reader
	// buffer[at:end] is read and not used yet.
	buffer  []byte
	at, end int
	// failed ends the input: an error of from, or io.ErrUnexpectedEOF if the input is not complete.
	failed error
}

// fill reads more. Its error is why there is none.
func (i *input) fill() error {
	for tries := 0; i.failed == nil && tries < 100; tries++ {
		n, err := i.from.Read(i.buffer)
		switch {
		case errors.Is(err, io.EOF):
			i.failed = io.ErrUnexpectedEOF
		case err != nil:
			i.failed = err
		}
		if i.at, i.end = 0, n; n > 0 {
			return nil
		}
	}
	if i.failed == nil {
		i.failed = io.ErrNoProgress
	}
	return i.failed
}

// next consumes one byte.
func (i *input) next() (byte, error) {
	if i.at == i.end {
		if err := i.fill(); err != nil {
			return 0, err
		}
	}
	c := i.buffer[i.at]
	i.at++
	return c, nil
}

// peek returns the next byte after blanks without consuming it.
func (i *input) peek() (byte, error) {
	for {
		for ; i.at < i.end; i.at++ {
			if c := i.buffer[i.at]; c != ' ' && c != '\n' && c != '\r' && c != '\t' {
				return c, nil
			}
		}
		if err := i.fill(); err != nil {
			return 0, err
		}
	}
}

func unexpected(c byte, want string) error { return fmt.Errorf("%q where %s should be", c, want) }

// lexer reads the literals of JSON.
type lexer struct{ input }

func (l *lexer) word(word string) error {
	for i := range len(word) {
		c, err := l.next()
		if err != nil {
			return err
		}
		if c != word[i] {
			return unexpected(c, word)
		}
	}
	return nil
}

// quoted consumes a string and appends it to text, unless that is nil.
func (l *lexer) quoted(text *[]byte) error {
	l.at++ // the quote
	for {
		if text == nil {
			l.passPlain()
		}
		c, err := l.next()
		if err != nil {
			return err
		}
		switch {
		case c == '"':
			return nil
		case c < ' ':
			return fmt.Errorf("%q inside a string", c)
		case c == '\\':
			if err := l.escape(text); err != nil {
				return err
			}
		case text != nil:
			*text = append(*text, c)
		}
		if text != nil && len(*text) > maxTextBytes {
			return errTextTooLong
		}
	}
}

// passPlain skips plain characters in the middle of a string.
func (l *lexer) passPlain() {
	for l.at < l.end {
		if c := l.buffer[l.at]; c == '"' || c == '\\' || c < ' ' {
			return
		}
		l.at++
	}
}

// escape reads the rest of an escape after the backslash.
func (l *lexer) escape(text *[]byte) error {
	c, err := l.next()
	if err != nil {
		return err
	}
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return l.escapedRune(text)
	default:
		return fmt.Errorf("%q after a backslash", c)
	}
	if text != nil {
		*text = append(*text, c)
	}
	return nil
}

// escapedRune reads the rest of \uXXXX, and of a second one if both are one rune.
func (l *lexer) escapedRune(text *[]byte) error {
	first, err := l.hex()
	if err != nil {
		return err
	}
	for utf16.IsSurrogate(first) {
		if l.at == l.end {
			if err := l.fill(); err != nil {
				return err
			}
		}
		if l.buffer[l.at] != '\\' {
			first = utf8.RuneError
			break
		}
		l.at++
		c, err := l.next()
		if err != nil {
			return err
		}
		if c != 'u' { // another escape after half a rune
			l.at--
			if text != nil {
				*text = utf8.AppendRune(*text, utf8.RuneError)
			}
			return l.escape(text)
		}
		second, err := l.hex()
		if err != nil {
			return err
		}
		if both := utf16.DecodeRune(first, second); both != utf8.RuneError {
			first = both
			break
		}
		if text != nil {
			*text = utf8.AppendRune(*text, utf8.RuneError)
		}
		first = second
	}
	if text != nil {
		*text = utf8.AppendRune(*text, first)
	}
	return nil
}

func (l *lexer) hex() (rune, error) {
	var r rune
	for range 4 {
		c, err := l.next()
		if err != nil {
			return 0, err
		}
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, fmt.Errorf("%q in an escape", c)
		}
		r = r<<4 | rune(c)
	}
	return r, nil
}

// digits consumes a number and appends its first characters to text, unless that is nil.
func (l *lexer) digits(text *[]byte) error {
	l.accept(text, "-")
	if !l.accept(text, "0") && !l.run(text) {
		return l.noDigit()
	}
	if l.accept(text, ".") && !l.run(text) {
		return l.noDigit()
	}
	if l.accept(text, "eE") {
		l.accept(text, "+-")
		if !l.run(text) {
			return l.noDigit()
		}
	}
	return nil // a number may end the input; if it should not, the next read fails
}

func (l *lexer) noDigit() error {
	if l.at == l.end {
		return l.failed
	}
	return unexpected(l.buffer[l.at], "a digit")
}

// maxDigits exceeds the length of a 64-bit integer, so that a cut number is never a valid one.
const maxDigits = 40

// accept consumes one of the characters if it is next.
func (l *lexer) accept(text *[]byte, characters string) bool {
	if l.at == l.end && l.fill() != nil {
		return false
	}
	c := l.buffer[l.at]
	if strings.IndexByte(characters, c) < 0 {
		return false
	}
	l.at++
	if text != nil && len(*text) < maxDigits {
		*text = append(*text, c)
	}
	return true
}

// run consumes digits, and reports whether there was one.
func (l *lexer) run(text *[]byte) bool {
	some := false
	for l.accept(text, "0123456789") {
		some = true
	}
	return some
}
