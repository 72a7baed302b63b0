// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package load

import "time"

// Result is the result of a load.
type Result struct {
	Counts

	// Due are the messages of the load, Published those that Pulsar stored.
	Due       int64 `json:"due"`
	Published int64 `json:"published"`
	// Missing are published messages without a result: lost, or still backlog.
	Missing int64 `json:"missing"`
	// LateRatio is the share of late and missing messages among all that were due.
	LateRatio float64 `json:"lateRatio"`
	// Latencies are from when a message was due until its result was published.
	Latencies Latencies `json:"latencies"`
	// Lag of the publisher, and Bottleneck: why it limited the load; "" if it did not.
	Lag        Lag    `json:"lag"`
	Bottleneck string `json:"bottleneck,omitempty"`
	// Skew is the minimum difference of the clocks, and the error of the latencies.
	Skew time.Duration `json:"skewNanoseconds"`
}

// NewResult sums up a load with this many due messages after its end.
func NewResult(due int64, p *Publisher, m *Meter) Result {
	r := newResult(due, p, m.Tally)
	r.Skew = m.Skew()
	return r
}

// NewEstimate is NewResult without results: with the expected latency of each published message. Done are the messages
// with a known one.
func NewEstimate(due int64, p *Publisher, expected *Tally) Result {
	r := newResult(due, p, expected)
	r.Duplicates = nil
	return r
}

func newResult(due int64, p *Publisher, t *Tally) Result {
	lag, counts := p.Lag(), t.Counts()
	r := Result{
		Counts: counts, Due: due, Published: p.Published(), Missing: max(0, p.Published()-counts.Done),
		Latencies: t.Latencies(), Lag: lag, Bottleneck: lag.Bottleneck(t.objective, due, p.Sent()),
	}
	if due > 0 {
		r.LateRatio = float64(counts.Late+r.Missing+max(0, due-r.Published)) / float64(due)
	}
	return r
}
