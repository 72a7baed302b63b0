// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxLineBytes is far above the lines of our series, which have names as labels; longer lines are texts of exceptions.
	maxLineBytes = 32 << 10
	// maxInstances bounds the accepted instances of one process: a function worker runs some of one function.
	maxInstances = 1000
	// maxExact is the limit up to which a float counts exactly.
	maxExact = 1 << 53
)

var errCutOff = errors.New("its metrics are cut off")

type identity struct {
	kind      kind
	component string
	instance  string
}

type tally struct {
	values    [quantities]float64
	seen      [quantities]bool
	quantiles bool
}

// decode decodes the metrics of one process. Errors of the reader are wrapped, all others are about the text.
func decode(body io.Reader, address backlog.InstanceAddress) ([]backlog.InstanceSample, error) {
	found, began := map[identity]*tally{}, time.Time{}
	lines := bufio.NewReaderSize(body, maxLineBytes)
	for {
		line, err := nextLine(lines)
		if errors.Is(err, io.EOF) {
			// HTTP/1.0 ends with the connection: a number in a line without an end may lack digits.
			if len(line) > 0 && line[0] != '#' {
				return nil, errCutOff
			}
			return samples(found, address, began)
		}
		if err != nil {
			return nil, fmt.Errorf("reading metrics: %w", err)
		}
		if at := parseStart(line); !at.IsZero() {
			began = at
		}
		if err := record(found, line, address.Component); err != nil {
			return nil, err
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

// record adds a line, if its series is read.
func record(found map[identity]*tally, line []byte, component string) error {
	s, wanted, err := parse(line)
	if err != nil || !wanted || component != "" && s.of.component != component {
		return err
	}
	t := found[s.of]
	if t == nil {
		if len(found) == maxInstances {
			return fmt.Errorf("it has metrics of more than %d instances: is it one of them?", maxInstances)
		}
		t = &tally{}
		found[s.of] = t
	}
	if s.quantile {
		t.quantiles = true
		return nil
	}
	if t.seen[s.what] {
		return fmt.Errorf("it has %s twice", s.of.kind.series(s.what))
	}
	t.seen[s.what], t.values[s.what] = true, s.value
	return nil
}

// samples returns the complete samples of a process that began then, or an error.
func samples(found map[identity]*tally, address backlog.InstanceAddress, began time.Time) ([]backlog.InstanceSample,
	error,
) {
	identities := slices.SortedFunc(maps.Keys(found), func(a, b identity) int {
		return strings.Compare(a.instance, b.instance)
	})
	if len(identities) == 0 {
		of := address.Component
		if of == "" {
			of = "a function, sink or source"
		}
		return nil, fmt.Errorf("it has no metrics of %s: is that the metrics port of an instance?", of)
	}
	all := make([]backlog.InstanceSample, 0, len(identities))
	for _, id := range identities {
		if id.kind != identities[0].kind || id.component != identities[0].component {
			return nil, fmt.Errorf("it has metrics of %s and %s: the address must name one of them", identities[0].component,
				id.component)
		}
		sample, err := found[id].sample(id.kind)
		if err != nil {
			return nil, err
		}
		sample.ID, sample.Began = address.ID, began
		if len(identities) > 1 {
			sample.ID += "#" + id.instance
		}
		all = append(all, sample)
	}
	return all, nil
}

// sample returns a sample without an ID.
func (t *tally) sample(k kind) (backlog.InstanceSample, error) {
	for what := range quantities {
		if k.has(what) && !t.seen[what] {
			return backlog.InstanceSample{}, fmt.Errorf("it lacks %s: is that the metrics port of an instance?", k.series(what))
		}
	}
	s := backlog.InstanceSample{
		Received:         int64(t.values[received]),
		Processed:        int64(t.values[processed]),
		UserExceptions:   int64(t.values[userExceptions]),
		SystemExceptions: int64(t.values[systemExceptions]),
	}
	if k.has(calls) {
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
