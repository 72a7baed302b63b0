// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"math"
	"time"
)

// Measurement is a number that is known, or unknown with a reason, or a lower bound: the sum of the known parts. The
// zero value is unknown (ErrNoData), so a forgotten field is never read as 0.
type Measurement struct {
	value float64
	known bool
	// reason is why the number is unknown or a lower bound.
	reason error
	// beyond is the maximum amount by which the number exceeds a lower bound.
	beyond float64
}

// negligible is the share by which the number may exceed a lower bound that still counts as the number: rates differ by
// more from one window to the next.
const negligible = 0.05

// Known returns a known measurement.
func Known(value float64) Measurement {
	return Measurement{value: value, known: true}
}

// Unknown returns an unknown measurement; a nil reason becomes ErrNoData.
func Unknown(reason error) Measurement {
	return Measurement{reason: reason}
}

// AtLeast returns a lower bound, with the reason why the number is unknown.
func AtLeast(value float64, reason error) Measurement {
	return between(value, math.Inf(1), reason)
}

// between returns a lower bound that the number exceeds by at most beyond.
func between(value, beyond float64, reason error) Measurement {
	if reason == nil {
		reason = ErrNoData
	}
	return Measurement{value: value, known: true, reason: reason, beyond: beyond}
}

// Value returns the number, or the reason why it is unknown. It fails for a lower bound.
func (m Measurement) Value() (float64, error) {
	switch {
	case m.Known():
		return m.value, nil
	case m.reason != nil:
		return 0, m.reason
	default:
		return 0, ErrNoData
	}
}

// LowerBound returns the number or a lower bound, or the reason why neither is known. The result may add replicas, and
// must not remove any.
func (m Measurement) LowerBound() (float64, error) {
	if m.known {
		return m.value, nil
	}
	return m.Value()
}

// Known reports whether there is a number.
func (m Measurement) Known() bool {
	return m.known && (m.beyond == 0 || m.beyond <= negligible*m.value)
}

// lowerBound is the measurement after a part turned out to be unknown.
func (m Measurement) lowerBound(reason error) Measurement {
	if !m.known {
		return m
	}
	return AtLeast(m.value, reason)
}

// plus adds two measurements that are never negative; with an unknown one the sum is a lower bound.
func (m Measurement) plus(other Measurement) Measurement {
	switch {
	case !m.known && !other.known:
		return m
	case !m.known:
		return other.lowerBound(m.reason)
	case !other.known:
		return m.lowerBound(other.reason)
	}
	sum := between(m.value+other.value, m.beyond+other.beyond, cmp.Or(m.reason, other.reason))
	if sum.beyond == 0 {
		return Known(sum.value)
	}
	return sum
}

// larger returns the larger of two measurements, as plus does.
func (m Measurement) larger(other Measurement) Measurement {
	sum := m.plus(other)
	sum.value = max(m.value, other.value)
	return sum
}

// withoutRates is the reading before any rate was measured.
func (r Reading) withoutRates() Reading {
	for _, m := range []*Measurement{&r.PublishRate, &r.LatestPublishRate, &r.DeliveryRate, &r.ProcessRate} {
		*m = m.lowerBound(ErrNoRate)
	}
	return r
}

// lowerBounds is the reading of a part: its sums are lower bounds.
func (r Reading) lowerBounds(reason error) Reading {
	for _, m := range r.sums() {
		*m = m.lowerBound(reason)
	}
	for _, m := range []*Measurement{&r.OldestAge, &r.Consumers, &r.Holding, &r.UnreadPartitions, &r.UnreadMessages} {
		*m = m.lowerBound(reason)
	}
	r.ExactAt = time.Time{}
	return r
}
