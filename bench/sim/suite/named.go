// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Scenario is a load with the seconds at which it steps, for scores of settling.
type Scenario struct {
	model.Scenario
	Steps []int
	// Repeated is the second at which the third of its pulses has ended; 0 without pulses.
	Repeated int
}

const (
	minute = 60
	hour   = 60 * minute
)

// base has the defaults of scenarios: a replica processes 50 a second, starts in 25 s, and the objective is a minute.
func base(name string, seconds int, rate model.Curve) model.Scenario {
	return model.Scenario{
		Name: name, Seconds: seconds, Rate: rate, Capacity: model.Constant(50), Objective: time.Minute,
		Initial: 1, Min: 1, Max: 100, Start: 25 * time.Second,
	}
}

func minutes(count int) time.Duration { return time.Duration(count) * time.Minute }

// steps is a rate that changes at given seconds.
func steps(rates map[int]float64) model.Curve {
	return func(second float64) float64 {
		last, rate := -1, 0.0
		for at, r := range rates {
			if float64(at) <= second && at > last {
				last, rate = at, r
			}
		}
		return rate
	}
}

func sine(mean, amplitude, period float64) model.Curve {
	return func(second float64) float64 { return mean + amplitude*math.Sin(2*math.Pi*second/period) }
}

func ramp(from, to float64, begin, end int) model.Curve {
	return func(second float64) float64 {
		return from + (to-from)*min(1, max(0, (second-float64(begin))/float64(end-begin)))
	}
}

// pulses of a rate for a while, every period.
func pulses(low, high float64, length, period int) model.Curve {
	return func(second float64) float64 {
		if int(second)%period < length {
			return high
		}
		return low
	}
}

// Named scenarios, in the order of the table.
func Named() []Scenario {
	return slices.Concat(loads(), transients(), functions(), pathologies(), subscriptions(), faults(), lies())
}

// change raises the load after 10 minutes and lowers it after 40.
func change(before, high, after float64) model.Curve {
	return steps(map[int]float64{0: before, 10 * minute: high, 40 * minute: after})
}

// changing marks a scenario with a step of the load.
func changing(s model.Scenario) Scenario {
	return Scenario{Scenario: s, Steps: []int{10 * minute, 40 * minute}}
}

// loads are ordinary Functions with different arrivals.
func loads() []Scenario {
	// Eight times the load at once, and back: how fast and in how many steps.
	step := base("step", hour, change(50, 400, 50))
	// A load that grows for 40 minutes: whether replicas are there when it does.
	rising := base("ramp", hour, ramp(20, 600, 5*minute, 45*minute))
	// A day: cost without sudden changes.
	day := base("diurnal24h", 24*hour, sine(300, 250, 24*hour))
	// Two minutes of ten times the load, each 20 minutes: followed each time, or kept.
	spikes := base("spikes", 2*hour, pulses(50, 500, 2*minute, 20*minute))
	// Only a batch each half hour, to zero in between: how long to wake up, and with how many replicas.
	batch := base("batch-zero", 2*hour, pulses(0, 400, 3*minute, 30*minute))
	batch.Min, batch.Initial = 0, 0
	// 600,000 messages in 10 s, then nearly none: a backlog that no rate explains.
	flood := base("flood", hour, func(second float64) float64 {
		if second >= 600 && second < 610 {
			return 60000
		}
		return 20
	})
	// A constant mean that varies by half from second to second: replicas should not.
	noisy := base("noisy", hour, model.Constant(200))
	noisy.Noise = 0.5
	// An objective of 10 s with a start of 25 s: only replicas that run in advance help.
	tight := base("tight-slo10", hour, change(100, 300, 100))
	tight.Objective = 10 * time.Second
	// Entries of ten messages: a controller that takes entries for messages sees a tenth.
	batched := base("batched10", hour, change(50, 400, 50))
	batched.Batch = 10
	// Three topics with loads at different times: only the sum matters.
	topics := base("multi-topic", hour, change(40, 200, 40))
	topics.More = []model.Curve{sine(120, 100, 25*minute), pulses(20, 200, 3*minute, 15*minute)}
	// The second of two Functions: the first falls behind and catches up 3 minutes later, so its output steps less,
	// later and for a while beyond its input.
	replicas := steps(map[int]float64{0: 2, 13 * minute: 9, 45 * minute: 2})
	output := append(model.New(base("first", hour, change(50, 300, 50)), 1).Run(func(first *model.System) int {
		return int(replicas(float64(first.Second())))
	}), 0) // the oracle looks beyond the end
	chain := base("two-stage", hour, func(second float64) float64 { return output[min(int(second), hour)] })
	// 5 % more each minute: past load underestimates the present for an hour.
	growth := base("growth", hour, func(second float64) float64 { return 50 * math.Pow(1.05, second/minute) })
	return []Scenario{
		changing(step),
		{Scenario: rising},
		{Scenario: growth},
		{Scenario: day},
		{Scenario: spikes},
		{Scenario: batch},
		{Scenario: flood},
		{Scenario: noisy},
		changing(tight),
		changing(batched),
		{Scenario: topics},
		{Scenario: chain},
	}
}

// functions have special replicas.
func functions() []Scenario {
	// 90 s until a replica consumes: the backlog of that time has to be drained too.
	slowStart := base("slowstart", hour, change(50, 300, 100))
	slowStart.Start = 90 * time.Second
	// Calls that wait for another system use a fifth of a processor: CPU says little.
	ioBound := base("io-bound", hour, change(50, 300, 80))
	ioBound.CPU = 0.2
	// Some replicas are twice as fast as others.
	hetero := base("heterogeneous", hour, change(50, 400, 100))
	hetero.Spread = 0.3
	// An asynchronous function: its busy time says nothing below saturation.
	async := base("async", hour, change(50, 400, 50))
	async.Asynchronous = true
	// Half a second a message and a receive queue of 1,000: old replicas prefetch minutes of work that new ones never get.
	hog := base("prefetch-hog", hour, change(4, 30, 4))
	hog.Capacity = model.Constant(2)
	// The same with a suitable receive queue.
	small := hog
	small.Name, small.ReceiveQueue = "prefetch-20", 20
	return append([]Scenario{
		changing(slowStart), changing(ioBound), changing(hetero), changing(async), {Scenario: hog}, {Scenario: small},
	}, uneven()...)
}

// uneven Functions have calls, or replicas, of different speeds.
func uneven() []Scenario {
	// A tenth of a second on average, with a standard deviation of almost three times that.
	lognormal := base("lognormal-calls", hour, change(10, 80, 10))
	lognormal.Capacity, lognormal.ReceiveQueue = model.Constant(10), 200
	lognormal.Calls = func(random *rand.Rand) float64 {
		const sigma = 1.5
		return math.Exp(sigma*random.NormFloat64() - sigma*sigma/2)
	}
	// One call of 20 takes a code path of 1.6 s, the others one of 20 ms: also a tenth of a second on average.
	bimodal := lognormal
	bimodal.Name, bimodal.Calls = "bimodal-calls", func(random *rand.Rand) float64 {
		if random.IntN(20) == 0 {
			return 16.2
		}
		return 0.2
	}
	// A call takes a minute, and there is one in ten minutes: more replicas would be idle.
	rare := base("rare-long-calls", 6*hour, model.Constant(1.0/(10*minute)))
	rare.Capacity, rare.Objective = model.Constant(1.0/minute), minutes(5)
	rare.Calls = func(*rand.Rand) float64 { return 1 }
	// Calls of minutes: between four and twelve at a time, and an objective of three calls.
	var long []Scenario
	for _, seconds := range []int{30, 60, 120, 300} {
		call := float64(seconds)
		one := base(fmt.Sprintf("long-calls-%d", seconds), 4*hour, steps(map[int]float64{
			0: 4 / call, 80 * minute: 12 / call, 160 * minute: 4 / call,
		}))
		one.Capacity, one.ReceiveQueue, one.Initial = model.Constant(1/call), 1, 5
		one.Objective = time.Duration(3*seconds) * time.Second
		one.Calls = func(random *rand.Rand) float64 {
			const sigma = 0.3
			return math.Exp(sigma*random.NormFloat64() - sigma*sigma/2)
		}
		long = append(long, Scenario{Scenario: one})
	}
	// Every other replica has 30 % of the others' speed: it gets as many messages, until its receive queue is full.
	slow := base("slow-half", hour, change(50, 300, 50))
	slow.Speed = func(number, _, _ int) float64 {
		if number%2 == 1 {
			return 0.3
		}
		return 1
	}
	// Each replica pauses for 30 s in 5 minutes, one after the other, during calls.
	paused := base("staggered-pauses", hour, change(50, 300, 50))
	paused.Speed = func(number, second, _ int) float64 {
		if (second+number*37)%(5*minute) < 30 {
			return 0.001
		}
		return 1
	}
	// Replicas slow down with age: half as fast after an hour. New ones start at full speed.
	leak := base("leak", 2*hour, model.Constant(200))
	leak.Initial, leak.Speed = 5, func(_, _, age int) float64 { return 1 / (1 + float64(age)/hour) }
	return append(long,
		Scenario{Scenario: lognormal}, Scenario{Scenario: bimodal}, Scenario{Scenario: rare}, Scenario{Scenario: slow},
		Scenario{Scenario: paused}, Scenario{Scenario: leak})
}
