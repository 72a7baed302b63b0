// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/compare"
)

const (
	// window is how many steps a rate covers.
	window = 2
	// busySeconds of work, and at least busyMessages, are in the backlog of replicas that always have work.
	busySeconds, busyMessages = 5, 10
	leastBusy, leastStarts    = 5, 3
	// leastUncertainty is the smallest uncertainty of an estimate: rates rest on scrapes that are not exactly a step
	// apart.
	leastUncertainty = 0.05
	// deviations is the number of standard deviations in the bounds of the adapter's capacity.
	deviations = 2
)

// signals by time, as far as they are known.
type signals struct {
	processed, backlog, replicas, ready samples
	learned, uncertainty                samples
	step                                time.Duration
}

// capacity of a replica; false if the series do not show it. Seen is then the most that a replica processed.
func (s signals) capacity() (estimate compare.Estimate, seen float64, known bool) {
	if len(s.learned) > 0 {
		return s.learnedCapacity(), 0, true
	}
	var busy []float64
	for _, at := range s.ready.times() {
		processed, some := s.processed[at]
		ready := s.ready[at]
		if !some || ready < 1 {
			continue
		}
		seen = max(seen, processed/ready)
		if processed > 0 && s.isBusy(at, processed, ready) {
			busy = append(busy, processed/ready)
		}
	}
	if len(busy) < leastBusy {
		return compare.Estimate{}, seen, false
	}
	low, middle, high := spread(busy)
	return compare.Estimate{
		Range: widened(low, middle, high, leastUncertainty),
		Source: fmt.Sprintf("process rate by ready replicas at %d times with a backlog of at least %d s",
			len(busy), busySeconds),
	}, seen, true
}

// isBusy reports whether over the whole window of a rate there was a backlog and the same replicas were ready.
func (s signals) isBusy(at int64, processed, ready float64) bool {
	for i := range int64(window + 1) {
		before := at - i*s.step.Milliseconds()
		backlog, known := s.backlog[before]
		if !known || backlog < max(busyMessages, busySeconds*processed) || s.ready[before] != ready {
			return false
		}
	}
	return true
}

func (s signals) learnedCapacity() compare.Estimate {
	low, middle, high := spread(slices.Collect(maps.Values(s.learned)))
	uncertainty := leastUncertainty
	if len(s.uncertainty) > 0 {
		_, deviation, _ := spread(slices.Collect(maps.Values(s.uncertainty)))
		uncertainty = min(0.9, max(uncertainty, deviations*deviation))
	}
	return compare.Estimate{
		Range: widened(low, middle, high, uncertainty), Source: policyPrefix + "capacity_messages_per_second",
	}
}

// start is the time from a scale-up until all its replicas are ready, in seconds; false if there were too few
// scale-ups.
func (s signals) start() (estimate compare.Estimate, known bool) {
	var took []float64
	times := s.replicas.times()
	for i := 1; i < len(times); i++ {
		if s.replicas[times[i]] <= s.replicas[times[i-1]] {
			continue
		}
		if until, some := s.readyAt(times[i:]); some {
			took = append(took, float64(until-times[i])/1000)
		}
	}
	if len(took) < leastStarts {
		return compare.Estimate{}, false
	}
	low, middle, high := spread(took)
	step := s.step.Seconds() // replicas may have been set, or become ready, at any time between two samples
	return compare.Estimate{
		Range:  compare.Range{Low: max(0, low-step), Expected: max(step/2, middle), High: max(step/2, high) + step},
		Source: fmt.Sprintf("from set to ready in %d scale-ups", len(took)),
	}, true
}

// readyAt is when as many replicas were ready as were set at the first of the times and stayed set until then.
func (s signals) readyAt(times []int64) (at int64, some bool) {
	for _, at := range times {
		if s.replicas[at] != s.replicas[times[0]] {
			return 0, false
		}
		if ready, known := s.ready[at]; known && ready >= s.replicas[at] {
			return at, true
		}
	}
	return 0, false
}

// late is the share of the time in which the backlog was more than the ready replicas process within the objective;
// false if it is unknown.
func (s signals) late(capacity float64, objective time.Duration) (share float64, known bool) {
	late, all := 0, 0
	for at, backlog := range s.backlog {
		ready, some := s.ready[at]
		if !some {
			continue
		}
		all++
		if backlog >= busyMessages && backlog > ready*capacity*objective.Seconds() {
			late++
		}
	}
	if all == 0 {
		return 0, false
	}
	return float64(late) / float64(all), true
}

// spread is the 10th, 50th and 90th percentile.
func spread(all []float64) (low, middle, high float64) {
	slices.Sort(all)
	at := func(share float64) float64 { return all[int(share*float64(len(all)-1)+0.5)] }
	return at(0.1), at(0.5), at(0.9)
}

func widened(low, middle, high, uncertainty float64) compare.Range {
	return compare.Range{
		Low: low * (1 - uncertainty), Expected: middle, High: high * (1 + uncertainty),
	}
}
