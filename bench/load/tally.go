// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

const (
	// A histogram counts microseconds up to a week, each to 0.1 %.
	longest = 7 * 24 * time.Hour
	digits  = 3
	word    = 64
)

// Latencies are quantiles of a time, to 0.1 %. All are 0 when Count is.
type Latencies struct {
	Count int64         `json:"count"`
	Mean  time.Duration `json:"meanNanoseconds"`
	P50   time.Duration `json:"p50Nanoseconds"`
	P90   time.Duration `json:"p90Nanoseconds"`
	P99   time.Duration `json:"p99Nanoseconds"`
	P999  time.Duration `json:"p999Nanoseconds"`
	Max   time.Duration `json:"maxNanoseconds"`
}

type histogram struct{ counts *hdrhistogram.Histogram }

func newHistogram() *histogram {
	return &histogram{counts: hdrhistogram.New(1, longest.Microseconds(), digits)}
}

func (h *histogram) record(d time.Duration) {
	_ = h.counts.RecordValue(min(max(0, d), longest).Microseconds()) // within the bounds of New
}

func (h *histogram) latencies() Latencies {
	if h.counts.TotalCount() == 0 {
		return Latencies{}
	}
	at := func(percent float64) time.Duration {
		return time.Duration(h.counts.ValueAtQuantile(percent)) * time.Microsecond
	}
	return Latencies{
		Count: h.counts.TotalCount(), Mean: time.Duration(h.counts.Mean() * float64(time.Microsecond)),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: time.Duration(h.counts.Max()) * time.Microsecond,
	}
}

// Tally counts results. A message counts once, when it was first done.
type Tally struct {
	objective time.Duration

	mu         sync.Mutex // guards all below
	seen       []uint64   // a bit for each sequence number
	done, late int64
	again      int64
	all        *histogram
	recent     *histogram // since the last call of Recent
}

// Counts of a tally.
type Counts struct {
	// Done are messages, of which Late took longer than the objective; Duplicates are messages done again, nil if unknown.
	Done       int64  `json:"done"`
	Late       int64  `json:"late"`
	Duplicates *int64 `json:"duplicates,omitempty"`
}

// NewTally has seen no message.
func NewTally(objective time.Duration) *Tally {
	return &Tally{objective: objective, all: newHistogram(), recent: newHistogram()}
}

// Record records a done message with its latency. Sequence numbers are from 0 to 10^9.
func (t *Tally) Record(sequence uint64, latency time.Duration) {
	if sequence > maxMessages {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	at, bit := int(sequence/word), uint64(1)<<(sequence%word)
	if missing := at + 1 - len(t.seen); missing > 0 {
		t.seen = append(t.seen, make([]uint64, missing)...)
	}
	if t.seen[at]&bit != 0 {
		t.again++
		return
	}
	t.seen[at] |= bit
	t.done++
	if latency > t.objective {
		t.late++
	}
	t.all.record(latency)
	t.recent.record(latency)
}

// Counts of all messages so far.
func (t *Tally) Counts() Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Counts{Done: t.done, Late: t.late, Duplicates: new(t.again)}
}

// Latencies of all messages so far.
func (t *Tally) Latencies() Latencies {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all.latencies()
}

// Recent are the latencies of the messages since the last call.
func (t *Tally) Recent() Latencies {
	t.mu.Lock()
	defer t.mu.Unlock()
	latencies := t.recent.latencies()
	t.recent.counts.Reset()
	return latencies
}
