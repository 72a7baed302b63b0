// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// What is too much to be meant: a month at a row a second is within it.
const (
	maxRows    = 4_000_000
	maxBytes   = 256 << 20
	maxLength  = 62 * 24 * time.Hour
	maxRate    = 1e9
	leastWords = 2
)

// Load is a rate over time.
type Load struct {
	// at are seconds since the first row, ascending, and rates messages per second.
	at, rates []float64
}

// Seconds that the load lasts.
func (l Load) Seconds() int { return int(l.at[len(l.at)-1]) }

// Rows are the seconds since the first row and the messages per second of each.
func (l Load) Rows() iter.Seq2[float64, float64] {
	return func(yield func(second, rate float64) bool) {
		for i, second := range l.at {
			if !yield(second, l.rates[i]) {
				return
			}
		}
	}
}

// Rate in messages per second, so many seconds after the first row; linear between rows, and the nearest one's outside.
func (l Load) Rate(second float64) float64 {
	next := sort.SearchFloat64s(l.at, second)
	switch {
	case next == 0:
		return l.rates[0]
	case next == len(l.at):
		return l.rates[next-1]
	}
	part := (second - l.at[next-1]) / (l.at[next] - l.at[next-1])
	return l.rates[next-1]*(1-part) + l.rates[next]*part
}

// Read decodes a load in which no two rows are further apart than gap.
func Read(from io.Reader, gap time.Duration) (Load, error) {
	limited := &io.LimitedReader{R: from, N: maxBytes + 1}
	rows := csv.NewReader(limited)
	rows.ReuseRecord, rows.TrimLeadingSpace = true, true
	columns, err := header(rows)
	if err != nil {
		return Load{}, err
	}
	d := decoder{gap: gap.Seconds()}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Load{}, fmt.Errorf("reading a row: %w", err) // has the line
		}
		line, _ := rows.FieldPos(0)
		if err := d.add(row[columns.time], row[columns.rate]); err != nil {
			return Load{}, fmt.Errorf("line %d: %w", line, err)
		}
	}
	switch {
	case limited.N <= 0:
		return Load{}, fmt.Errorf("there are more than %d MB: record a shorter time or fewer rows", maxBytes>>20)
	case len(d.load.at) < leastWords || d.load.Seconds() < 1:
		return Load{},
			fmt.Errorf("there are %d rows below the header: at least two, a second apart, make a load", len(d.load.at))
	}
	return d.load, nil
}

type columns struct{ time, rate int }

// header says which column is which.
func header(rows *csv.Reader) (columns, error) {
	names, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return columns{}, errors.New("the file is empty: its first line must be time,rate")
	}
	if err != nil {
		return columns{}, fmt.Errorf("reading the header: %w", err)
	}
	names = slices.Clone(names)
	names[0] = strings.TrimPrefix(names[0], "\ufeff") // as spreadsheets write
	if len(names) != 2 || slices.Index(names, "time") < 0 || slices.Index(names, "rate") < 0 {
		return columns{}, fmt.Errorf("line 1: the columns are %q: they must be time and rate", names)
	}
	return columns{slices.Index(names, "time"), slices.Index(names, "rate")}, nil
}

// decoder turns rows into a load.
type decoder struct {
	load Load
	gap  float64
	// dated says that times are RFC 3339, and first is the first of either kind.
	dated        bool
	first        time.Time
	firstSeconds float64
}

func (d *decoder) add(at, rate string) error {
	second, err := d.second(at)
	if err != nil {
		return err
	}
	value, err := strconv.ParseFloat(rate, 64)
	if err != nil || !(value >= 0 && value <= maxRate) {
		return fmt.Errorf("rate %q must be a number of messages per second from 0 to %g", rate, maxRate)
	}
	if n := len(d.load.at); n > 0 {
		switch since := second - d.load.at[n-1]; {
		case since <= 0:
			return fmt.Errorf("time %q is not after that of the row before: sort the rows, one for each time", at)
		case since > d.gap:
			return fmt.Errorf(
				"time %q is %s after the row before, more than %s: what the load was meanwhile is not known; fill the gap, cut "+
					"the file there, or allow it with -gap", at, seconds(since), seconds(d.gap))
		}
	}
	if second > maxLength.Seconds() || len(d.load.at) == maxRows {
		return fmt.Errorf("the load is longer than %s or %d rows: cut it", maxLength, maxRows)
	}
	d.load.at, d.load.rates = append(d.load.at, second), append(d.load.rates, value)
	return nil
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, maxLength.Seconds()*1000) * float64(time.Second)).Round(time.Second)
}

// second since the first row.
func (d *decoder) second(at string) (float64, error) {
	begins := len(d.load.at) == 0
	if value, err := strconv.ParseFloat(at, 64); err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
		if begins {
			d.firstSeconds = value
		}
		if d.dated {
			return 0, fmt.Errorf("time %q is in seconds, but those before are dates: use one of them", at)
		}
		return value - d.firstSeconds, nil
	}
	moment, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return 0, fmt.Errorf("time %q must be seconds, or RFC 3339 such as 2026-03-01T09:00:00Z", at)
	}
	if begins {
		d.dated, d.first = true, moment
	}
	if !d.dated {
		return 0, fmt.Errorf("time %q is a date, but those before are in seconds: use one of them", at)
	}
	return moment.Sub(d.first).Seconds(), nil
}
