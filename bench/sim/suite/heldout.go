// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// HeldOut returns scenarios drawn from a seed: an hour on a Shared subscription, from 1 replica on, between 1 and 100.
// Drawn evenly, if nothing else is said:
//
//   - capacity of a replica: 2 to 500 messages a second, evenly in its logarithm; noise of 0 to 0.4
//   - latency objective: 20 to 180 s, start: 8 to 78 s, both in whole seconds; share of a processor: 0.3 to 1
//   - receive queue: 20 s of work, between 1 and 1,000 messages, in three of four; else Pulsar's default of 1,000
//   - replicas that the load needs: from 0.5 to 8, up to 1.5 to 6 times as many (evenly in the logarithm)
//   - its shape, each in one of five: a step up after 10 to 20 min and down 25 min later; a sine with a period of 10 to
//     60 min; pulses of 1 to 6 min each 10 to 25 min; a walk with a step each 30 s; a ramp that begins in the first 10
//     min and takes 15 to 40 min
//   - in one of four, the capacity falls to 0.4 to 0.8 of itself between the 20th and the 40th minute
//
// No other trouble is drawn: no batches, partitions, keys, delays, failures, limits downstream or outages. A load that
// maxReplicas cannot process is drawn again, from numbers of its own: all others of its seed stay what they were.
func HeldOut(seed uint64, count int) []Scenario {
	random, again := rand.New(rand.NewPCG(seed, 0x5eed)), rand.New(rand.NewPCG(seed, 0xa9a1))
	scenarios := make([]Scenario, 0, count)
	for i := range count {
		name := fmt.Sprintf("held-out-%03d", i)
		drawn := draw(random, name)
		for !feasible(drawn) {
			drawn = draw(again, name)
		}
		scenarios = append(scenarios, drawn)
	}
	return scenarios
}

// feasible reports whether maxReplicas can process the arrivals, second by second.
func feasible(s Scenario) bool {
	for second := range s.Seconds {
		if s.Rate(float64(second)) > float64(s.Max)*s.Capacity(float64(second)) {
			return false
		}
	}
	return true
}

func draw(random *rand.Rand, name string) Scenario {
	s := function(random, name)
	capacity := s.Capacity(0)
	// Replicas that the load needs; they determine its rates.
	low := between(random, 0.5, 8)
	high := low * math.Exp(between(random, math.Log(1.5), math.Log(6)))
	drawn := Scenario{Scenario: s}
	switch random.IntN(5) {
	case 0:
		at := 10*minute + random.IntN(10*minute)
		drawn.Rate = steps(map[int]float64{0: low * capacity, at: high * capacity, at + 25*minute: low * capacity})
		drawn.Steps = []int{at, at + 25*minute}
	case 1:
		drawn.Rate = sine((low+high)/2*capacity, (high-low)/2*capacity, between(random, 10*minute, hour))
	case 2:
		period := 10*minute + random.IntN(15*minute)
		drawn.Rate = pulses(low*capacity, high*capacity, minute+random.IntN(5*minute), period)
	case 3:
		drawn.Rate = walk(random, low*capacity, high*capacity)
	default:
		begin := random.IntN(10 * minute)
		drawn.Rate = ramp(low*capacity, high*capacity, begin, begin+15*minute+random.IntN(25*minute))
	}
	if random.IntN(4) == 0 {
		drop := between(random, 0.4, 0.8)
		drawn.Capacity = steps(map[int]float64{0: capacity, 20*minute + random.IntN(20*minute): drop * capacity})
	}
	return drawn
}

// walk goes up and down at random, a step every half minute.
func walk(random *rand.Rand, low, high float64) model.Curve {
	const step = 30
	values := make([]float64, hour/step+1)
	at := between(random, 0, 1)
	for i := range values {
		values[i] = low + at*(high-low)
		at = min(1, max(0, at+0.08*random.NormFloat64()))
	}
	return func(second float64) float64 {
		i := min(int(second/step), len(values)-2)
		part := min(1, second/step-float64(i))
		return values[i]*(1-part) + values[i+1]*part
	}
}

func between(random *rand.Rand, low, high float64) float64 { return low + random.Float64()*(high-low) }
