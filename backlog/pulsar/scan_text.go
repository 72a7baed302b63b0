// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// quoted takes a string and appends it to text, unless that is nil.
func (s *scanner) quoted(text *[]byte) error {
	s.at++ // the quote
	for {
		if text == nil {
			s.passPlain()
		}
		c, err := s.next()
		if err != nil {
			return err
		}
		switch {
		case c == '"':
			return nil
		case c < ' ':
			return fmt.Errorf("%q inside a string", c)
		case c == '\\':
			if err := s.escape(text); err != nil {
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

// passPlain passes over what needs no look in the middle of a string.
func (s *scanner) passPlain() {
	for s.at < s.end {
		if c := s.buffer[s.at]; c == '"' || c == '\\' || c < ' ' {
			return
		}
		s.at++
	}
}

// escape reads what follows a backslash.
func (s *scanner) escape(text *[]byte) error {
	c, err := s.next()
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
		return s.escapedRune(text)
	default:
		return fmt.Errorf("%q after a backslash", c)
	}
	if text != nil {
		*text = append(*text, c)
	}
	return nil
}

// escapedRune reads the rest of \uXXXX, and of a second one where the two are one rune.
func (s *scanner) escapedRune(text *[]byte) error {
	first, err := s.hex()
	if err != nil {
		return err
	}
	for utf16.IsSurrogate(first) {
		if s.at == s.end {
			if err := s.fill(); err != nil {
				return err
			}
		}
		if s.buffer[s.at] != '\\' {
			first = utf8.RuneError
			break
		}
		s.at++
		c, err := s.next()
		if err != nil {
			return err
		}
		if c != 'u' { // another escape after half a rune
			s.at--
			if text != nil {
				*text = utf8.AppendRune(*text, utf8.RuneError)
			}
			return s.escape(text)
		}
		second, err := s.hex()
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

func (s *scanner) hex() (rune, error) {
	var r rune
	for range 4 {
		c, err := s.next()
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

// digits takes a number and appends its first characters to text, unless that is nil.
func (s *scanner) digits(text *[]byte) error {
	s.accept(text, "-")
	if !s.accept(text, "0") && !s.run(text) {
		return s.noDigit()
	}
	if s.accept(text, ".") && !s.run(text) {
		return s.noDigit()
	}
	if s.accept(text, "eE") {
		s.accept(text, "+-")
		if !s.run(text) {
			return s.noDigit()
		}
	}
	return nil // a number may end the input; if it should not, whoever reads on meets that
}

func (s *scanner) noDigit() error {
	if s.at == s.end {
		return s.failed
	}
	return unexpected(s.buffer[s.at], "a digit")
}

// maxDigits is more than an integer of 64 bits has, so that what is cut is none.
const maxDigits = 40

// accept takes one of the characters if it comes next.
func (s *scanner) accept(text *[]byte, characters string) bool {
	if s.at == s.end && s.fill() != nil {
		return false
	}
	c := s.buffer[s.at]
	if strings.IndexByte(characters, c) < 0 {
		return false
	}
	s.at++
	if text != nil && len(*text) < maxDigits {
		*text = append(*text, c)
	}
	return true
}

// run takes digits, and says whether there was one.
func (s *scanner) run(text *[]byte) bool {
	some := false
	for s.accept(text, "0123456789") {
		some = true
		if text != nil && len(*text) == maxDigits {
			break // whoever wants the number will not want this one
		}
	}
	return some
}
