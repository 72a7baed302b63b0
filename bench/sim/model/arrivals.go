// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"math/rand/v2"
)

// arrivals draws the number of arriving messages. It has its own random numbers, so that all controllers get the same
// load.
type arrivals struct {
	scenario *Scenario
	random   *rand.Rand
}

// draw returns the messages of a second, by partition, then by further topic.
func (a *arrivals) draw(second int) []float64 {
	s := a.scenario
	arrived := make([]float64, 0, s.Partitions+len(s.More))
	factor := max(0, 1+s.Noise*a.random.NormFloat64())
	rate, sum := max(0, s.Rate(float64(second)))*factor, s.totalWeight()
	for _, weight := range s.Weights {
		arrived = append(arrived, a.count(rate*weight/sum))
	}
	for _, more := range s.More {
		arrived = append(arrived, a.count(max(0, more(float64(second)))*factor))
	}
	return arrived
}

// count draws the number of arrivals for an expected number.
func (a *arrivals) count(mean float64) float64 {
	if a.scenario.Exact {
		return mean
	}
	return poisson(a.random, mean)
}

// poisson draws from a Poisson distribution, approximated by a normal one above 50.
func poisson(random *rand.Rand, mean float64) float64 {
	if mean <= 0 {
		return 0
	}
	if mean > 50 {
		return max(0, math.Round(mean+math.Sqrt(mean)*random.NormFloat64()))
	}
	limit, product, count := math.Exp(-mean), random.Float64(), 0.0
	for product > limit {
		product *= random.Float64()
		count++
	}
	return count
}
