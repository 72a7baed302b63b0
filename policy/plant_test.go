// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// plant is a simple model of a Function: one queue, equal replicas that consume some time after they were requested,
// and an autoscaler that copies the last decision periodically. It runs in steps of a second.
type plant struct {
	// rate is the arrival rate at a second, one the rate that a replica processes, in messages per second; limit that of
	// all replicas.
	rate       func(second int) float64
	one, limit float64
	// stuck messages are in the queue and no replica can process them.
	stuck float64
	// start is the start time of a replica, poll the time between two readings, sync that between two syncs of the
	// autoscaler, which acts at once with 0; in seconds.
	start, poll, sync int
	// dead replicas are requested and never consume.
	dead int
	// covered is the share of its time that a busy replica reports, 0 for replicas that do not report it; noise is the
	// relative deviation of measurements.
	covered, noise float64
	random         *rand.Rand
	// exact is true if fractions of messages count.
	exact bool
	// change changes the input before a decision.
	change func(second int, in *policy.Input)

	in     policy.Input
	state  policy.State
	second int
	queue  float64
	// ready has the second from which each replica consumes.
	ready []int
	// desired is the last decided number.
	desired int32
	// window since the last poll.
	window struct {
		published, processed, least, could float64
		running                            int
		unsteady                           bool
	}
	log []poll
}

// poll is one decision with its input.
type poll struct {
	second   int
	in       policy.Input
	before   policy.State
	decision policy.Decision
	after    policy.State
}

// newPlant keeps up at a constant rate with replicas that start within 20 s.
func newPlant(current int32, rate, one float64) *plant {
	p := &plant{
		rate: func(int) float64 { return rate }, one: one, limit: math.Inf(1), start: 20, poll: 10, covered: 0.9,
		random: rand.New(rand.NewPCG(1, uint64(current))), in: input(current, backlog.Reading{}), desired: current,
	}
	p.ready = make([]int, current)
	p.in.Spec.MaxReplicas = 1000
	p.window.running, p.window.least = int(current), math.Inf(1)
	return p
}

// run runs for a number of seconds.
func (p *plant) run(seconds int) *plant {
	for range seconds {
		p.second++
		p.work()
		if p.second%p.poll == 0 {
			p.decide()
		}
		if p.sync == 0 || p.second%p.sync == 0 {
			p.scale()
		}
	}
	return p
}

func (p *plant) running() int {
	running, _ := slices.BinarySearch(p.ready, p.second+1) // in the order of their times
	return max(0, running-p.dead)
}

func (p *plant) work() {
	running, rate := p.running(), p.rate(p.second)
	p.queue += rate
	can := min(p.limit, float64(running)*p.one)
	done := min(p.queue, can)
	p.queue -= done
	w := &p.window
	w.unsteady = w.unsteady || running != w.running
	w.running = running
	w.published += rate
	w.processed += done
	w.could += can
	w.least = min(w.least, p.queue)
}

// measured is a number with measurement noise.
func (p *plant) measured(value float64) backlog.Measurement {
	return backlog.Known(max(0, value*(1+p.noise*p.random.NormFloat64())))
}

func (p *plant) decide() {
	w, seconds := p.window, float64(p.poll)
	in := p.in
	in.Now = noon().Add(time.Duration(p.second) * time.Second)
	whole := math.Floor
	if p.exact {
		whole = func(messages float64) float64 { return messages }
	}
	in.Reading = reading(whole(p.queue+p.stuck), 0)
	in.Reading.At, in.Reading.Window = in.Now, time.Duration(p.poll)*time.Second
	in.Reading.LeastReady = backlog.Known(whole(min(w.least, p.queue) + p.stuck))
	in.Reading.LeastUndispatched = in.Reading.LeastReady
	in.Reading.PublishRate, in.Reading.ProcessRate = p.measured(w.published/seconds), p.measured(w.processed/seconds)
	in.Reading.LatestPublishRate, in.Reading.LatestWindow = in.Reading.PublishRate, in.Reading.Window
	in.Reading.GrowthRate = backlog.Known((w.published - w.processed) / seconds)
	in.Reading.Consumers, in.Reading.SteadyConsumers = backlog.Known(float64(w.running)), !w.unsteady
	if p.covered > 0 && w.could > 0 {
		busy := p.covered * w.processed / w.could * (1 + p.noise/2*p.random.NormFloat64())
		in.Reading = timed(in.Reading, float64(w.running), busy, w.processed/seconds)
	}
	if p.change != nil {
		p.change(p.second, &in)
	}
	before := p.state
	var decision policy.Decision
	decision, p.state = policy.Decide(in, before)
	p.desired = decision.Replicas
	p.log = append(p.log, poll{second: p.second, in: in, before: before, decision: decision, after: p.state})
	p.window.published, p.window.processed, p.window.could, p.window.least, p.window.unsteady = 0, 0, 0, math.Inf(1), false
}

// scale sets the last decided number.
func (p *plant) scale() {
	p.in.CurrentReplicas = p.desired
	for len(p.ready) < int(p.desired) {
		p.ready = append(p.ready, p.second+p.start)
	}
	p.ready = p.ready[:p.desired]
}

// actions are the seconds at which the number of replicas changed, from a second on.
func (p *plant) actions(from int) []int {
	var at []int
	for i := 1; i < len(p.log); i++ {
		if p.log[i].second >= from && p.log[i].in.CurrentReplicas != p.log[i-1].in.CurrentReplicas {
			at = append(at, p.log[i].second)
		}
	}
	return at
}

// replicas is the number of replicas at every poll.
func (p *plant) replicas() []int32 {
	all := make([]int32, len(p.log))
	for i, one := range p.log {
		all[i] = one.in.CurrentReplicas
	}
	return all
}
