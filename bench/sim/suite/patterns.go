// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Families of loads that return.
const (
	// Regular loads can be foreseen.
	Regular = "patterns"
	// Adversarial loads were regular, and change: what was learned is wrong.
	Adversarial = "adversarial"
)

// Patterns returns scenarios drawn from a seed, count of each kind of a family: pulses from a load that needs 0.1 to 1
// replica to one that needs 2 to 10, again and again. The rest is drawn as in HeldOut, and the capacity stays.
func Patterns(family string, seed uint64, count int) []Scenario {
	random := rand.New(rand.NewPCG(seed, 0xca7))
	all := regular()
	if family == Adversarial {
		random, all = rand.New(rand.NewPCG(seed, 0xadf)), adversarial()
	}
	var scenarios []Scenario
	for _, k := range all {
		for i := range count {
			s := function(random, fmt.Sprintf("%s-%02d", k.name, i))
			t := k.draw(random)
			s.Seconds, s.Noise = int(max(4*hour, 24*t.period)), between(random, 0, 0.3)
			low, high := between(random, 0.1, 1)*s.Capacity(0), between(random, 2, 10)*s.Capacity(0)
			if t.fromZero {
				low, s.Min, s.Initial = 0, 0, 0
			}
			one := Scenario{}
			s.Rate, one.Repeated = t.curve(random, s.Seconds, low, high)
			one.Scenario = s
			scenarios = append(scenarios, one)
		}
	}
	return scenarios
}

// kind of a load, by name.
type kind struct {
	name string
	draw func(*rand.Rand) train
}

// regular kinds: cron jobs that run every few minutes, pulses with a period that grows by 0.3 to 1 %, two different
// pulses in a period, and pulses from no load at all with replicas at zero.
func regular() []kind {
	var all []kind
	for _, period := range []float64{2, 5, 10, 15, 60} {
		all = append(all, kind{fmt.Sprintf("cron-%.0fm", period), func(random *rand.Rand) train {
			return pulsesEach(random, period*minute)
		}})
	}
	return append(all,
		changed("drift", func(random *rand.Rand, t *train) {
			period, growth := t.period, between(random, 0.003, 0.01)
			t.every = func(i int) float64 { return period * math.Pow(1+growth, float64(i)) }
		}),
		changed("two-a-period", func(_ *rand.Rand, t *train) {
			period := t.period
			t.every = func(i int) float64 { return period * either(i%2 == 1, 0.6, 1.4) }
			t.height = func(i int) float64 { return either(i%2 == 1, 0.4, 1) }
		}),
		kind{"zero-10m", func(random *rand.Rand) train {
			t := pulsesEach(random, 10*minute)
			t.fromZero = true
			return t
		}},
	)
}

// adversarial kinds: pulses at random times; five periods without a pulse after each eight; a period that changes after
// each six pulses, or once after two hours; every eleventh pulse between two others; and after each six, pulses of a
// quarter of the height, or of 0.3 of the length.
func adversarial() []kind {
	const change, late = 6, 2 * hour
	return []kind{
		changed("random", func(random *rand.Rand, t *train) {
			length, period := t.length, t.period
			t.every = func(int) float64 { return length + random.ExpFloat64()*period }
		}),
		changed("stops", func(_ *rand.Rand, t *train) {
			period := t.period
			t.every = func(i int) float64 { return period * either(i%8 == 7, 5, 1) }
		}),
		changed("moves", func(_ *rand.Rand, t *train) {
			period := t.period
			t.every = func(i int) float64 { return period * either(i/change%2 == 1, 0.65, 1) }
		}),
		changed("moves-late", func(_ *rand.Rand, t *train) {
			period := t.period
			t.every = func(i int) float64 { return period * either(float64(i)*period > late, 0.65, 1) }
		}),
		changed("extra", func(_ *rand.Rand, t *train) {
			period := t.period
			t.every = func(i int) float64 { return period * either(i%11 > 8, 0.5, 1) }
		}),
		changed("lower", func(_ *rand.Rand, t *train) {
			t.height = func(i int) float64 { return either(i/change%2 == 1, 0.25, 1) }
		}),
		changed("shorter", func(_ *rand.Rand, t *train) {
			t.stretch = func(i int) float64 { return either(i/change%2 == 1, 0.3, 1) }
		}),
	}
}

func either(first bool, one, other float64) float64 {
	if first {
		return one
	}
	return other
}

// train is pulses, the i-th every(i) seconds before the next. Factors that are nil are 1.
type train struct {
	period, length, jitter float64
	every, height, stretch func(i int) float64
	fromZero               bool
}

// pulsesEach last for a tenth to four tenths of their period in seconds, and begin up to 3 % of it late.
func pulsesEach(random *rand.Rand, period float64) train {
	return train{
		period: period, length: between(random, 0.1, 0.4) * period, jitter: min(20, 0.03*period),
		every: func(int) float64 { return period },
	}
}

// changed is pulses each 4 to 20 minutes, with a change.
func changed(name string, change func(random *rand.Rand, t *train)) kind {
	return kind{name, func(random *rand.Rand) train {
		t := pulsesEach(random, between(random, 4*minute, 20*minute))
		change(random, &t)
		return t
	}}
}

// curve is the rate, second by second, and when the third pulse has ended.
func (t train) curve(random *rand.Rand, seconds int, low, high float64) (rate model.Curve, repeated int) {
	rates := make([]float64, seconds)
	for i := range rates {
		rates[i] = low
	}
	at := between(random, 0, t.period)
	for i := 0; int(at) < seconds; i++ {
		begin, length, height := at+between(random, 0, t.jitter), t.length, 1.0
		if t.stretch != nil {
			length *= t.stretch(i)
		}
		if t.height != nil {
			height = t.height(i)
		}
		if i == 2 {
			repeated = int(begin + length)
		}
		for second := int(begin); second < min(seconds, int(begin+length)); second++ {
			rates[second] = low + (high-low)*height
		}
		at += t.every(i)
	}
	return func(second float64) float64 { return rates[min(seconds-1, max(0, int(second)))] }, repeated
}

// function draws a Function as HeldOut does: its capacity, objective, start and receive queue.
func function(random *rand.Rand, name string) model.Scenario {
	capacity := math.Exp(between(random, math.Log(2), math.Log(500)))
	s := model.Scenario{
		Name: name, Seconds: hour, Capacity: model.Constant(capacity), Noise: between(random, 0, 0.4),
		Objective: time.Duration(between(random, 20, 180)) * time.Second,
		Start:     time.Duration(between(random, 8, 78)) * time.Second,
		CPU:       between(random, 0.3, 1), Initial: 1, Min: 1, Max: 100,
	}
	// Three of four have a suitable receive queue, about 20 s of work; the rest has Pulsar's default of 1,000 messages,
	// which is minutes of work for a slow function.
	if random.IntN(4) > 0 {
		s.ReceiveQueue = min(1000, max(1, math.Round(20*capacity)))
	}
	return s
}
