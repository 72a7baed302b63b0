// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"slices"
	"sort"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

const (
	// maxRecording is the longest time that a Recording covers.
	maxRecording = 10 * 366 * 24 * time.Hour
	// gapFactor is the factor of the usual time between two rows, above which rows are missing between them.
	gapFactor = 1.5
)

// Recording is a load with gaps, in which it is unknown.
type Recording struct {
	parts []part
	// interval is the usual time between two rows, in seconds.
	interval float64
	// midnight is how many seconds before the first row its day began, in UTC; 0 if rows have no dates.
	midnight float64
}

// part is a time without a gap.
type part struct {
	trace.Load

	// at are the seconds since the first row, and rates are those of the rows.
	at, rates []float64
	// begin is when it begins, in seconds since the first row of the recording.
	begin float64
	// sums are the messages before each row.
	sums []float64
}

// Read decodes a load with gaps, which may be compressed by gzip. Besides the columns of trace.Read it knows two of any
// name: a time, in UTC if it has no zone, and the messages until the next row. A row without a value is missing.
func Read(from io.Reader) (Recording, error) {
	plain, err := decompressed(from)
	if err != nil {
		return Recording{}, err
	}
	all, counted, err := trace.ReadWithGaps(plain, maxRecording)
	if err != nil {
		return Recording{}, err
	}
	var at []float64
	for second := range all.Rows() {
		at = append(at, second)
	}
	r := Recording{interval: median(distances(at))}
	if start, known := all.Start(); known {
		r.midnight = start.UTC().Sub(start.UTC().Truncate(24 * time.Hour)).Seconds()
	}
	for from := 0; from < len(at); {
		to := from + 1
		for to < len(at) && at[to]-at[to-1] <= gapFactor*r.interval {
			to++
		}
		one := all.Part(from, to)
		if counted {
			if one, err = one.Spread(r.interval); err != nil {
				return Recording{}, err
			}
		}
		r.parts = append(r.parts, newPart(one, at[from]))
		from = to
	}
	return r, nil
}

// decompressed is the content of a file that gzip may have compressed.
func decompressed(from io.Reader) (io.Reader, error) {
	buffered := bufio.NewReader(from)
	if magic, err := buffered.Peek(2); err != nil || !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return buffered, nil //nolint:nilerr // what is shorter is plain
	}
	plain, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	return plain, nil
}

func newPart(l trace.Load, begin float64) part {
	p := part{Load: l, begin: begin, rates: l.Rates()}
	for at := range l.Rows() {
		p.at = append(p.at, at)
	}
	p.sums = make([]float64, len(p.at))
	for i := 1; i < len(p.at); i++ {
		p.sums[i] = p.sums[i-1] + (p.at[i]-p.at[i-1])*(p.rates[i]+p.rates[i-1])/2
	}
	return p
}

// length in seconds.
func (p part) length() float64 { return p.at[len(p.at)-1] }

// messages between two seconds of the part.
func (p part) messages(from, to float64) float64 { return p.until(to) - p.until(from) }

func (p part) until(second float64) float64 {
	next := sort.SearchFloat64s(p.at, second)
	if next == 0 {
		return 0
	}
	before := min(next, len(p.at)) - 1
	return p.sums[before] + (min(second, p.length())-p.at[before])*(p.rates[before]+p.Rate(second))/2
}

// Mean rate of the known times, in messages per second.
func (r Recording) Mean() float64 {
	messages, seconds := 0.0, 0.0
	for _, p := range r.parts {
		messages, seconds = messages+p.sums[len(p.sums)-1], seconds+p.length()
	}
	return messages / seconds
}

func distances(at []float64) []float64 {
	all := make([]float64, 0, len(at))
	for i := 1; i < len(at); i++ {
		all = append(all, at[i]-at[i-1])
	}
	return all
}

// median of at least one value.
func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
