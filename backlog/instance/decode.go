// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxLineBytes is far above the lines of our series, which have names as labels; longer lines are texts of exceptions.
	maxLineBytes = 32 << 10
	// maxExact is the limit up to which a float counts exactly.
	maxExact = 1 << 53
)

var errCutOff = errors.New("its metrics are cut off")

// tally has the series of an instance.
type tally struct {
	kind      kind // of its first series; empty without any
	values    [quantities]float64
	seen      [quantities]bool
	quantiles bool
}

// decode decodes the metrics of the instance with the id. Errors of the reader are wrapped, all others are about the
// text.
func decode(body io.Reader, id string) (backlog.InstanceSample, error) {
	var found tally
	var began time.Time
	lines := bufio.NewReaderSize(body, maxLineBytes)
	for {
		line, err := nextLine(lines)
		if errors.Is(err, io.EOF) {
			// HTTP/1.0 ends with the connection: a number in a line without an end may lack digits.
			if len(line) > 0 && line[0] != '#' {
				return backlog.InstanceSample{}, errCutOff
			}
			return found.sample(id, began)
		}
		if err != nil {
			return backlog.InstanceSample{}, fmt.Errorf("reading metrics: %w", err)
		}
		if at := parseStart(line); !at.IsZero() {
			began = at
		}
		if err := found.add(line); err != nil {
			return backlog.InstanceSample{}, err
		}
	}
}

// nextLine returns a line without its end, and an empty one for a line that is too long. With io.EOF it returns a last
// line without an end.
func nextLine(lines *bufio.Reader) ([]byte, error) {
	line, err := lines.ReadSlice('\n')
	if err == nil || !errors.Is(err, bufio.ErrBufferFull) {
		return bytes.TrimRight(line, "\r\n"), err
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = lines.ReadSlice('\n')
	}
	return nil, err
}

// add adds a line, if its series is read.
func (t *tally) add(line []byte) error {
	s, wanted, err := parse(line)
	if err != nil || !wanted {
		return err
	}
	if t.kind == "" {
		t.kind = s.kind
	}
	switch {
	case s.kind != t.kind:
		return fmt.Errorf("it has metrics of a %s and a %s: is that the metrics port of an instance?", t.kind, s.kind)
	case s.quantile:
		t.quantiles = true
	case t.seen[s.what]:
		return fmt.Errorf("it has %s twice", s.kind.series(s.what))
	default:
		t.seen[s.what], t.values[s.what] = true, s.value
	}
	return nil
}

// sample returns the sample of an instance that began then, or an error unless it is complete.
func (t *tally) sample(id string, began time.Time) (backlog.InstanceSample, error) {
	if t.kind == "" {
		return backlog.InstanceSample{},
			errors.New("it has no metrics of a function, sink or source: is that the metrics port of an instance?")
	}
	for what := range quantities {
		if t.kind.has(what) && !t.seen[what] {
			return backlog.InstanceSample{},
				fmt.Errorf("it lacks %s: is that the metrics port of an instance?", t.kind.series(what))
		}
	}
	s := backlog.InstanceSample{
		ID:               id,
		Began:            began,
		Received:         int64(t.values[received]),
		Processed:        int64(t.values[processed]),
		UserExceptions:   int64(t.values[userExceptions]),
		SystemExceptions: int64(t.values[systemExceptions]),
	}
	if t.kind.has(calls) {
		count, busy := int64(t.values[calls]), time.Duration(math.Round(t.values[busyMillis]*float64(time.Millisecond)))
		s.Calls, s.BusyTime, s.FailedCallsCounted = &count, &busy, t.quantiles
	}
	return s, nil
}

// check validates a value. NaN, an infinity or a negative number is no count, and is never corrected.
func (q quantity) check(value float64) error {
	most := float64(maxExact)
	if q == busyMillis {
		most = float64(math.MaxInt64 / int64(time.Millisecond) / 2) // 146 years
	}
	if !(value >= 0 && value <= most) || q != busyMillis && value != math.Trunc(value) {
		return fmt.Errorf("its value %g cannot be", value)
	}
	return nil
}
