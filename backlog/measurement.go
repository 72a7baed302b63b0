// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

// Measurement is a number that is either known or unknown with a reason. The zero value is unknown (ErrNoData), so a
// forgotten field can never be read as 0.
type Measurement struct {
	value  float64
	known  bool
	reason error
}

// Known returns a known measurement.
func Known(value float64) Measurement {
	return Measurement{value: value, known: true}
}

// Unknown returns an unknown measurement; a nil reason becomes ErrNoData.
func Unknown(reason error) Measurement {
	return Measurement{reason: reason}
}

// Value returns the number, or the reason why it is unknown.
func (m Measurement) Value() (float64, error) {
	switch {
	case m.known:
		return m.value, nil
	case m.reason != nil:
		return 0, m.reason
	default:
		return 0, ErrNoData
	}
}

// Known says whether there is a number.
func (m Measurement) Known() bool { return m.known }

// plus adds two measurements; the sum is known only when both are.
func (m Measurement) plus(other Measurement) Measurement {
	if !m.known {
		return m
	}
	if !other.known {
		return other
	}
	return Known(m.value + other.value)
}

// larger returns the larger of two measurements; it is known only when both are.
func (m Measurement) larger(other Measurement) Measurement {
	if !m.known {
		return m
	}
	if !other.known {
		return other
	}
	return Known(max(m.value, other.value))
}
