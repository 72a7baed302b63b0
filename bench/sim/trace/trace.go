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

// Implausible sizes: a month with a row per second is within the limit.
const (
	maxRows     = 4_000_000
	maxBytes    = 256 << 20
	maxLength   = 62 * 24 * time.Hour
	maxRate     = 1e9
	maxMessages = 1e12
	maxReplicas = 1_000_000
	leastRows   = 2
	// Seconds in this range are of the Unix epoch: 1973 to 2286.
	leastEpoch, mostEpoch = 1e8, 1e10
)

// Load is a rate over time, and the replicas that ran if known.
type Load struct {
	// at are seconds since the first row, ascending, and rates messages per second.
	at, rates []float64
	// replicas from each row on; unknown below 0.
	replicas []int
	// start is the time of the first row; zero if rows have seconds.
	start time.Time
}

// unknownReplicas represents an empty cell, within this package alone.
const unknownReplicas = -1

// Start is the time of the first row; false if it is unknown.
func (l Load) Start() (time.Time, bool) { return l.start, !l.start.IsZero() }

// Rates are those of the rows.
func (l Load) Rates() []float64 { return slices.Clone(l.rates) }

// Replicas that were set at a second after the first row: those of the last row before it; false while unknown.
func (l Load) Replicas(second int) (int, bool) {
	row := sort.Search(len(l.at), func(i int) bool { return l.at[i] > float64(second) }) - 1
	if row < 0 || l.replicas[row] == unknownReplicas {
		return 0, false
	}
	return l.replicas[row], true
}

// HasReplicas reports whether at least one row has its replicas.
func (l Load) HasReplicas() bool {
	return slices.ContainsFunc(l.replicas, func(n int) bool { return n != unknownReplicas })
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

// Rate in messages per second at a second after the first row; linear between rows, and the nearest one's outside.
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
	d := decoder{gap: gap.Seconds(), longest: maxLength.Seconds()}
	if err := d.read(from); err != nil {
		return Load{}, err
	}
	if d.counted {
		last := len(d.load.at) - 1
		return d.load.Spread(d.load.at[last] - d.load.at[last-1])
	}
	return d.load, nil
}

// read decodes all rows.
func (d *decoder) read(from io.Reader) error {
	limited := &io.LimitedReader{R: from, N: maxBytes + 1}
	rows := csv.NewReader(limited)
	rows.ReuseRecord, rows.TrimLeadingSpace = true, true
	columns, err := d.header(rows)
	if err != nil {
		return err
	}
	d.counted = columns.counted
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading a row: %w", err) // the error has the line
		}
		line, _ := rows.FieldPos(0)
		replicas := ""
		if columns.replicas >= 0 {
			replicas = row[columns.replicas]
		}
		if err := d.add(row[columns.time], row[columns.rate], replicas); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	switch {
	case limited.N <= 0:
		return fmt.Errorf("there are more than %d MB: record a shorter time or fewer rows", maxBytes>>20)
	case len(d.load.at) < leastRows || d.load.Seconds() < 1:
		return fmt.Errorf("there are %d rows below the header: at least two, a second apart, make a load", len(d.load.at))
	}
	return nil
}

// columns of a row; replicas is -1 if the file has none.
type columns struct {
	time, rate, replicas int
	// counted means that the rate is a number of messages until the next row.
	counted bool
}

// header finds the columns. A lenient decoder knows two of any name too.
func (d *decoder) header(rows *csv.Reader) (columns, error) {
	names, err := headerNames(rows)
	if err != nil {
		return columns{}, err
	}
	found, err := columnsOf(names)
	if err == nil || !d.lenient || len(names) != 2 || slices.Contains(names, "rate") {
		return found, err
	}
	if _, notName := strconv.ParseFloat(names[1], 64); notName == nil {
		return columns{}, err
	}
	return columns{time: 0, rate: 1, replicas: -1, counted: true}, nil
}

func headerNames(rows *csv.Reader) ([]string, error) {
	names, err := rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty: its first line must be time,rate or timestamp,messages")
	}
	if err != nil {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	names = slices.Clone(names)
	names[0] = strings.TrimPrefix(names[0], "\ufeff") // as written by spreadsheets
	return names, nil
}

// columnsOf finds the columns by their names.
func columnsOf(names []string) (columns, error) {
	found := columns{
		time: slices.Index(names, "time"), rate: slices.Index(names, "rate"), replicas: slices.Index(names, "replicas"),
	}
	if slices.Contains(names, "timestamp") {
		found.time, found.rate = slices.Index(names, "timestamp"), slices.Index(names, "messages")
		found.counted = true
	}
	known := 2
	if found.replicas >= 0 {
		known = 3
	}
	if len(names) != known || found.time < 0 || found.rate < 0 {
		return columns{}, fmt.Errorf("line 1: the columns are %q: they must be time and rate, or timestamp and messages, "+
			"and may be replicas", names)
	}
	return found, nil
}

// decoder turns rows into a load.
type decoder struct {
	load Load
	// gap is the longest time between two rows, and longest that of all, in seconds.
	gap, longest float64
	// lenient is set if rows may have no value, which are left out, and two columns any name.
	lenient bool
	// counted means that rows have timestamps and messages, which Spread converts to rates.
	counted bool
	// dated is set if times are RFC 3339; firstSeconds is the first time if they are not.
	dated        bool
	firstSeconds float64
}

func (d *decoder) add(at, rate, replicas string) error {
	if d.lenient && (rate == "" || strings.EqualFold(rate, "NaN")) {
		return nil
	}
	second, err := d.second(at)
	if err != nil {
		return err
	}
	value, err := d.value(rate)
	if err != nil {
		return err
	}
	if n := len(d.load.at); n > 0 {
		switch since := second - d.load.at[n-1]; {
		case since <= 0:
			return fmt.Errorf("time %q is not after that of the row before: sort the rows, one for each time", at)
		case since > d.gap:
			return fmt.Errorf(
				"time %q is %s after the row before, more than %s: what the load was meanwhile is not known; fill the gap, cut "+
					"the file there, or raise the limit", at, seconds(since), seconds(d.gap))
		}
	}
	if second > d.longest || len(d.load.at) == maxRows {
		return fmt.Errorf("the load is longer than %s or %d rows: cut it", seconds(d.longest), maxRows)
	}
	ran := unknownReplicas
	if replicas != "" {
		if ran, err = strconv.Atoi(replicas); err != nil || ran < 0 || ran > maxReplicas {
			return fmt.Errorf("replicas %q must be a whole number from 0 to %d, or empty", replicas, maxReplicas)
		}
	}
	d.load.at, d.load.rates = append(d.load.at, second), append(d.load.rates, value)
	d.load.replicas = append(d.load.replicas, ran)
	return nil
}

// value of a rate, or of a number of messages.
func (d *decoder) value(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	switch known := err == nil && value >= 0; { // so that NaN fails too
	case d.counted && (!known || value > maxMessages):
		return 0, fmt.Errorf("messages %q must be a number from 0 to %g", text, maxMessages)
	case !d.counted && (!known || value > maxRate):
		return 0, fmt.Errorf("rate %q must be a number of messages per second from 0 to %g", text, maxRate)
	}
	return value, nil
}

func seconds(s float64) time.Duration {
	return time.Duration(min(s, maxLength.Seconds()*1000) * float64(time.Second)).Round(time.Second)
}

// second since the first row.
func (d *decoder) second(at string) (float64, error) {
	begins := len(d.load.at) == 0
	if value, err := strconv.ParseFloat(at, 64); err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
		if value >= leastEpoch*1000 && value <= mostEpoch*1000 { // milliseconds
			value /= 1000
		}
		isEpoch := value >= leastEpoch && value <= mostEpoch
		if d.counted && !isEpoch {
			return 0, fmt.Errorf("timestamp %q must be seconds or milliseconds of Unix time, or RFC 3339 such as "+
				"2026-03-01T09:00:00Z", at)
		}
		if begins {
			d.firstSeconds = value
			if isEpoch {
				d.load.start = time.Unix(int64(value), 0).UTC()
			}
		}
		if d.dated {
			return 0, fmt.Errorf("time %q is in seconds, but those before are dates: use one of them", at)
		}
		return value - d.firstSeconds, nil
	}
	moment, err := parseTime(at)
	if err != nil {
		return 0, fmt.Errorf("time %q must be seconds, or RFC 3339 such as 2026-03-01T09:00:00Z", at)
	}
	if begins {
		d.dated, d.load.start = true, moment
	}
	if !d.dated {
		return 0, fmt.Errorf("time %q is a date, but those before are in seconds: use one of them", at)
	}
	return moment.Sub(d.load.start).Seconds(), nil
}
