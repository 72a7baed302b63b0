// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
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
	}
	raw, err := s.json.ReadValue()
	if err != nil {
		return nil, s.fault(err)
	}
	switch c {
	case '"':
		text, err := s.unquote(raw)
		return validText(text), err
	case '0':
		return json.Number(raw), nil
	default:
		return map[string]any{"true": true, "false": false}[string(raw)], nil
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
	require.Equal(t, good, err == nil, "%s: %v", name, err)
	s := newScanner(chunk(bytes.NewReader(content)))
	got, err := scanAny(s)
	err = s.finish(err)
	if errors.Is(err, errTextTooLong) {
		return
	}
	require.Equal(t, good, err == nil, "%s: %v", name, err)
	if good && !strings.ContainsRune(string(content), '\uFFFD') && bytes.Equal(content, bytes.ToValidUTF8(content, nil)) {
		require.Equal(t, want, got, name)
	}
}

func FuzzScanner(f *testing.F) {
	addFixtures(f, "*.json")
	f.Add([]byte(`["\ud83d\ude00\ud83dx",1e9,-0.5,true,false,null,{"a":{}}]`))
	f.Add([]byte(`{"":1` + strings.Repeat("0", 100) + `}`))
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
		strings.Repeat("9", 1000): "n is " + strings.Repeat("9", backlog.MostQuoted) + "..., " + errTooLarge.Error(),
		"-":                       io.ErrUnexpectedEOF.Error(), "-x": "invalid character 'x' in number (expecting digit)",
	} {
		_, err := newScanner(strings.NewReader(text)).integer("n")
		require.EqualError(t, err, want)
	}
	got, err := newScanner(strings.NewReader("null")).integer("n")
	require.NoError(t, err)
	require.False(t, got.present)
}

func TestScannerHoldsLittle(t *testing.T) {
	t.Run("a list that is not needed may be of any length", func(t *testing.T) {
		item := `"` + strings.Repeat("x", maxTokenBytes-2) + `",`
		s := newScanner(strings.NewReader("[" + strings.Repeat(item, 100) + "0]"))
		before := allocated()
		require.NoError(t, s.skip())
		require.NoError(t, s.finish(nil))
		require.Less(t, allocated()-before, uint64(5*maxTokenBytes))
	})
	t.Run("a string may not", func(t *testing.T) {
		for _, text := range []string{`"`, `{"`, `{"a":"`, `["\n`} {
			s := newScanner(io.MultiReader(strings.NewReader(text), letters{}))
			require.ErrorIs(t, s.skip(), errTokenTooLong)
			require.ErrorIs(t, s.skip(), errTokenTooLong, "and it stays that way")
		}
	})
	t.Run("nor blanks", func(t *testing.T) {
		blanks := strings.NewReader(strings.Repeat(" ", 4*maxTokenBytes) + "1")
		require.ErrorIs(t, newScanner(blanks).skip(), errTokenTooLong)
	})
	t.Run("a name is bounded", func(t *testing.T) {
		_, err := newScanner(strings.NewReader(`"` + strings.Repeat("x", maxTextBytes) + `"`)).textOrNull("name")
		require.ErrorIs(t, err, errTextTooLong)
	})
	t.Run("depth is bounded", func(t *testing.T) {
		require.ErrorContains(t, newScanner(strings.NewReader(strings.Repeat("[", 20_000))).skip(), "exceeded max depth")
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

func TestUntrackedSubscriptionsAreNotAllocated(t *testing.T) {
	allocations := func(subscriptions int) float64 {
		content := withSubscriptions(subscriptions)
		return testing.AllocsPerRun(10, func() {
			sample, err := decodeStats(bytes.NewReader(content), requestTracked())
			if err != nil || len(sample.Partitions[0].Subscriptions) != 1 {
				t.Error(err)
			}
		})
	}
	// The decoder's buffer grows with what it has read, up to 4 KB.
	require.LessOrEqual(t, allocations(5_000), allocations(500))
}

// TestAnAnswerDoesNotDependOnTheOnesBefore: scanners share decoders, and an answer may end or fail anywhere.
func TestAnAnswerDoesNotDependOnTheOnesBefore(t *testing.T) {
	good := stretched(t, 0, 3)
	shared := newDecoders()
	decode := func(content []byte) (backlog.TopicSample, error) {
		one := &answer{
			Reader: bytes.NewReader(content), ctx: t.Context(), budget: newBudget(), decoding: new(atomic.Int64),
			decoders: shared,
		}
		return decodeStats(one, backlog.Request{Detail: backlog.Full})
	}
	want, err := decode(good)
	require.NoError(t, err)
	kept := fmt.Sprintf("%+v", want)
	var group errgroup.Group
	for range 4 {
		group.Go(func() error {
			for end := 1; end < len(good); end += 97 {
				if _, err := decode(good[:end]); err == nil {
					return fmt.Errorf("an answer of %d bytes passed", end)
				}
				if _, err := decode(append(slices.Clone(good), '1')); err == nil {
					return errors.New("two values passed")
				}
				if got, err := decode(good); err != nil || !reflect.DeepEqual(want, got) {
					return fmt.Errorf("after %d bytes of it: %+v, %w", end, got, err)
				}
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.NotEmpty(t, shared)
	require.Equal(t, kept, fmt.Sprintf("%+v", want), "what was decoded stays when its decoder reads another answer")
}
