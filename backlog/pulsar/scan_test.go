// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// scanAny reads a value as encoding/json would into an any, with numbers as their text.
func scanAny(s *scanner) (any, error) {
	c, err := s.peek()
	if err != nil {
		return nil, err
	}
	switch c {
	case '{':
		all := map[string]any{}
		return all, s.object(func(key []byte) error {
			name := validText(key)
			value, err := scanAny(s)
			all[name] = value
			return err
		})
	case '[':
		all := []any{}
		return all, s.array(func() error {
			value, err := scanAny(s)
			all = append(all, value)
			return err
		})
	case '"':
		text, err := s.string()
		return string(text), err
	case 't':
		return true, s.word("true")
	case 'f':
		return false, s.word("false")
	case 'n':
		return nil, s.word("null")
	default:
		var text []byte
		err := s.digits(&text)
		return json.Number(text), err
	}
}

func scanSkip(content []byte, chunk func(io.Reader) io.Reader) error {
	s := newScanner(chunk(bytes.NewReader(content)))
	if err := s.skip(); err != nil {
		return err
	}
	return s.finish(nil)
}

func whole(r io.Reader) io.Reader { return r }

func TestScannerReadsWhatEncodingJSONReads(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `{"":{}}`, ` [ 1 , -2.5e+3 , 0 , "a" , true , false , null ] `,
		`{"a":{"b":[{}]},"c":"\u00e9\ud83d\ude00\n\\\/\""}`, `"é😀"`, `-0`,
		`12`, `1E9`, `0.10`, "\"\\ud83dx\"", "\"\\ud83d\\n\"", "\"\\ud83d\\ud83d\\ude00\"", "\"\\ude00\"",
		``, ` `, `{`, `[`, `[1`, `[1,`, `[1,]`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`, `{a:1}`, `{"a" 1}`, `01`, `1.`, `.5`,
		`-`, `+1`, `1e`, `1e+`,
		`tru`, `truE`, `nul`, `"a`, `"\`, `"\x"`, `"\u12"`, `"\u12g4"`, "\"\n\"", `1 2`, `{} {}`, `[] x`, `'a'`, `NaN`,
		"\ufeff1", "\"\\ud83d", "\"\\ud83d\\",
	} {
		t.Run(strconv.Quote(text), func(t *testing.T) {
			for name, chunk := range map[string]func(io.Reader) io.Reader{"whole": whole, "byte by byte": iotest.OneByteReader} {
				requireTwin(t, []byte(text), chunk, name)
			}
		})
	}
}

// requireTwin compares the scanner with encoding/json.
func requireTwin(t *testing.T, content []byte, chunk func(io.Reader) io.Reader, name string) {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	var want any
	good := json.Valid(content) && decoder.Decode(&want) == nil
	err := scanSkip(content, chunk)
	if errors.Is(err, errTooDeep) {
		return
	}
	require.Equal(t, good, err == nil, "%s: %v", name, err)
	s := newScanner(chunk(bytes.NewReader(content)))
	got, err := scanAny(s)
	err = s.finish(err)
	if errors.Is(err, errTextTooLong) {
		return
	}
	require.Equal(t, good, err == nil, "%s: %v", name, err)
	if good && !strings.ContainsRune(string(content), '\uFFFD') && len(content) < maxDigits &&
		bytes.Equal(content, bytes.ToValidUTF8(content, nil)) {
		require.Equal(t, want, got, name)
	}
}

func FuzzScanner(f *testing.F) {
	addFixtures(f, "*.json")
	f.Add([]byte(`["\ud83d\ude00\ud83dx",1e9,-0.5,true,false,null,{"a":{}}]`))
	f.Add([]byte(`{"":1` + strings.Repeat("0", maxDigits) + `}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		requireTwin(t, content, whole, "whole")
		if len(content) < 1<<12 {
			requireTwin(t, content, iotest.OneByteReader, "byte by byte")
		}
	})
}

func TestScannerReadsIntegersExactly(t *testing.T) {
	for _, value := range []int64{0, 1, -1, 1 << 53, -1 << 53} {
		text := strconv.FormatInt(value, 10)
		got, err := newScanner(strings.NewReader(text)).integer("n")
		require.NoError(t, err)
		require.Equal(t, number{value: value, present: true}, got)
	}
	for text, want := range map[string]string{
		"9007199254740993":     "n is 9007199254740993, " + errTooLarge.Error(),
		"9223372036854775807":  "n is 9223372036854775807, " + errTooLarge.Error(),
		"-9223372036854775808": "n is -9223372036854775808, " + errTooLarge.Error(),
		"1.5":                  "n is a number 1.5", "1e3": "n is a number 1e3",
		`"3"`: "n is a string", "{}": "n is an object", "[]": "n is a list", "true": "n is true or false",
		strings.Repeat("9", 1000): "n is a number " + strings.Repeat("9", maxDigits),
		"-":                       io.ErrUnexpectedEOF.Error(), "-x": `'x' where a digit should be`,
	} {
		_, err := newScanner(strings.NewReader(text)).integer("n")
		require.EqualError(t, err, want)
	}
	got, err := newScanner(strings.NewReader("null")).integer("n")
	require.NoError(t, err)
	require.False(t, got.present)
}

func TestScannerHoldsLittle(t *testing.T) {
	t.Run("a value that is not needed may be of any length", func(t *testing.T) {
		endless := io.MultiReader(strings.NewReader(`{"a":"`), io.LimitReader(letters{}, 64<<20), strings.NewReader(`"}`))
		s := newScanner(endless)
		require.NoError(t, s.skip())
		require.NoError(t, s.finish(nil))
		require.Less(t, cap(s.text), 2*maxTextBytes)
	})
	t.Run("a name may not", func(t *testing.T) {
		_, err := newScanner(io.MultiReader(strings.NewReader(`"`), letters{})).textOrNull("name")
		require.ErrorIs(t, err, errTextTooLong)
	})
	t.Run("depth is bounded", func(t *testing.T) {
		require.ErrorIs(t, newScanner(strings.NewReader(strings.Repeat("[", 1000))).skip(), errTooDeep)
	})
	t.Run("a reader without data ends the input", func(t *testing.T) {
		require.ErrorIs(t, newScanner(nothing{}).skip(), io.ErrNoProgress)
	})
	t.Run("an error of the connection is passed on", func(t *testing.T) {
		broken := errors.New("broken")
		for _, text := range []string{"", "{", `{"a`, `{"a":12`, `[tr`, `"\u0`} {
			require.ErrorIs(t, newScanner(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken))).skip(), broken)
		}
	})
}

// letters is an endless reader of letters.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }
