// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"time"
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
	Load

	// begin is when it begins, in seconds since the first row of the recording.
	begin float64
	// sums are the messages before each row.
	sums []float64
}

// ReadRecording decodes a load with gaps, which may be compressed by gzip. Besides the columns of Read it knows two of
// any name: a time, in UTC if it has no zone, and the messages until the next row. A row without a value is missing.
func ReadRecording(from io.Reader) (Recording, error) {
	plain, err := decompressed(from)
	if err != nil {
		return Recording{}, err
	}
	d := decoder{gap: maxRecording.Seconds(), longest: maxRecording.Seconds(), header: lenientHeader, lenient: true}
	if err := d.read(plain); err != nil {
		return Recording{}, err
	}
	r := Recording{interval: median(distances(d.load.at))}
	if start, known := d.load.Start(); known {
		r.midnight = start.UTC().Sub(start.UTC().Truncate(24 * time.Hour)).Seconds()
	}
	for from := 0; from < len(d.load.at); {
		to := from + 1
		for to < len(d.load.at) && d.load.at[to]-d.load.at[to-1] <= gapFactor*r.interval {
			to++
		}
		one := Load{rates: d.load.rates[from:to], replicas: d.load.replicas[from:to]}
		for _, at := range d.load.at[from:to] {
			one.at = append(one.at, at-d.load.at[from])
		}
		if d.counted {
			if one, err = one.spread(r.interval); err != nil {
				return Recording{}, err
			}
		}
		r.parts = append(r.parts, newPart(one, d.load.at[from]))
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

// lenientHeader knows two columns of any name too.
func lenientHeader(rows *csv.Reader) (columns, error) {
	names, err := headerNames(rows)
	if err != nil {
		return columns{}, err
	}
	found, err := columnsOf(names)
	if err == nil || len(names) != 2 || slices.Contains(names, "rate") {
		return found, err
	}
	if _, notName := strconv.ParseFloat(names[1], 64); notName == nil {
		return columns{}, err
	}
	return columns{time: 0, rate: 1, replicas: -1, counted: true}, nil
}

func newPart(l Load, begin float64) part {
	p := part{Load: l, begin: begin, sums: make([]float64, len(l.at))}
	for i := 1; i < len(l.at); i++ {
		p.sums[i] = p.sums[i-1] + (l.at[i]-l.at[i-1])*(l.rates[i]+l.rates[i-1])/2
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

// parseTime also takes what psql prints. A time without a zone is in UTC.
func parseTime(at string) (moment time.Time, err error) {
	for _, layout := range []string{time.RFC3339, time.DateTime, time.DateTime + "Z07", time.DateTime + "Z07:00"} {
		if moment, err = time.Parse(layout, at); err == nil {
			break
		}
	}
	return moment.UTC(), err //nolint:wrapcheck // the caller has a better one
}
