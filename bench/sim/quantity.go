// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// quantity is a number, or unknown: null in JSON and "-" in tables. The zero value is unknown.
type quantity struct {
	value float64
	known bool
}

// of is a known number; NaN and infinities are unknown.
func of(value float64) quantity {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return quantity{}
	}
	return quantity{value: value, known: true}
}

// over is q / by, unknown if that is no number.
func (q quantity) over(by quantity) quantity {
	if !q.known || !by.known || by.value == 0 {
		return quantity{}
	}
	return of(q.value / by.value)
}

func (q quantity) minus(other quantity) quantity {
	if !q.known || !other.known {
		return quantity{}
	}
	return of(q.value - other.value)
}

// percent of a share from 0 to 1.
func (q quantity) percent() quantity {
	q.value *= 100
	return q
}

func (q quantity) text(format string) string {
	if !q.known {
		return "-"
	}
	return fmt.Sprintf(format, q.value)
}

// MarshalJSON writes a number or null.
func (q quantity) MarshalJSON() ([]byte, error) {
	if !q.known {
		return []byte("null"), nil
	}
	return json.Marshal(q.value)
}

// fold combines many quantities into one.
type fold func([]quantity) quantity

// sum of the known ones; unknown without any.
func sum(values []quantity) quantity {
	total, known := 0.0, false
	for _, v := range values {
		if v.known {
			total, known = total+v.value, true
		}
	}
	return quantity{value: total, known: known}
}

// mean of the known ones; unknown without any.
func mean(values []quantity) quantity {
	count := 0
	for _, v := range values {
		if v.known {
			count++
		}
	}
	return sum(values).over(of(float64(count)))
}

// geometric mean of the known ones above 0; unknown without any.
func geometric(values []quantity) quantity {
	logs := make([]quantity, 0, len(values))
	for _, v := range values {
		if v.known && v.value > 0 {
			logs = append(logs, of(math.Log(v.value)))
		}
	}
	center := mean(logs)
	if !center.known {
		return center
	}
	return of(math.Exp(center.value))
}

// interval is a 95 % interval of the resampling. It is [low, high] in JSON.
type interval struct{ low, high quantity }

// MarshalJSON writes [low, high], or null if unknown.
func (i interval) MarshalJSON() ([]byte, error) {
	if !i.low.known || !i.high.known {
		return []byte("null"), nil
	}
	return json.Marshal([2]quantity{i.low, i.high})
}

func (i interval) text(format string) string {
	if !i.low.known || !i.high.known {
		return "-"
	}
	return i.low.text(format) + ".." + i.high.text(format)
}

// above and below report whether the whole interval is on that side of a value.
func (i interval) above(value float64) bool { return i.low.known && i.low.value > value }
func (i interval) below(value float64) bool { return i.high.known && i.high.value < value }

// bootstrap folds as many values as are known, drawn from them with replacement, a thousand times. Fewer than two
// values have no interval.
//
// Source: Efron, Bootstrap methods: another look at the jackknife, 1979; the percentile interval.
func bootstrap(values []quantity, by fold, seed uint64) interval {
	const samples = 1000
	random := rand.New(rand.NewPCG(seed, 3))
	values = slices.DeleteFunc(slices.Clone(values), func(q quantity) bool { return !q.known })
	if len(values) < 2 {
		return interval{}
	}
	var folded []float64
	drawn := make([]quantity, len(values))
	for range samples {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		if one := by(drawn); one.known {
			folded = append(folded, one.value)
		}
	}
	if len(folded) == 0 {
		return interval{}
	}
	slices.Sort(folded)
	at := func(share float64) quantity { return of(folded[int(share*float64(len(folded)-1))]) }
	return interval{low: at(0.025), high: at(0.975)}
}
