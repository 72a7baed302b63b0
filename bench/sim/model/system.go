// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// startSpread and warmUp are the defaults of Scenario.StartSpread and WarmUp.
	startSpread = 0.25
	warmUp      = 20
	// redelivery is when a failed message is tried again: a client's negativeAckRedeliveryDelay.
	redelivery = 60
	// recentSeconds is the time constant of what a topic's share of the arrivals is told by.
	recentSeconds = 60
)

// System is a Scenario under way. It is not safe for concurrent use.
type System struct {
	scenario Scenario
	load     *rand.Rand // of arrivals alone
	luck     *rand.Rand // of replicas
	second   int

	// waiting has a queue for each partition with Failover, else one for all, one for a hot key and one for what waits for
	// its hash's former consumer.
	waiting []fifo
	// failed messages are with their consumer for a minute, by the second of that, and then wait to be tried again.
	failed  [redelivery]fifo
	again   fifo
	delayed map[int][]float64 // by due second, by queue
	// held back by their delay, and how many of those the dispatcher has read.
	delayedTotal, delayedKnown float64
	// stuck messages fail for ever.
	stuck    float64
	replicas []*replica
	// active are the replicas that consume, in order.
	active []*replica
	// draining is the share of all hashes whose messages wait for the former consumer.
	draining float64

	started int
	updated int        // the second from which all pods are of the newest revision and ready
	rolling []*replica // those of an older revision, to be replaced from the end on

	published []float64 // by partition, then by further topics, since the last reset
	recent    []float64 // arrivals of a topic, of which older ones count less
	delivered float64   // since the last reset
	shown     []float64 // of those by topic, where there are several
	counted   float64   // of delivered is in shown
	computing float64   // replicas that compute, in the last second
	score     Score
}

// New returns the system before its first second. Equal seeds give equal loads whatever a controller does.
func New(scenario Scenario, seed uint64) *System {
	s := scenario.withDefaults()
	w := &System{
		scenario: s, second: -1, delayed: map[int][]float64{},
		load: rand.New(rand.NewPCG(seed, 1)), luck: rand.New(rand.NewPCG(seed, 2)), //nolint:gosec // a model, to be repeated
		published: make([]float64, s.Partitions+len(s.More)), recent: make([]float64, 1+len(s.More)),
		shown: make([]float64, 1+len(s.More)), waiting: make([]fifo, 1),
	}
	switch {
	case s.Type == backlog.Failover:
		w.waiting = make([]fifo, s.Partitions)
	case s.HotKey != nil || s.Type == backlog.KeyShared:
		w.waiting = make([]fifo, 3)
	}
	for range s.Initial {
		r := w.start()
		r.consumes = -int(math.Ceil(s.WarmUp)) // they were there before
		r.unready, r.ready = r.consumes, r.consumes
		w.replicas = append(w.replicas, r)
	}
	w.lookForActive()
	return w
}

// Scenario with its defaults.
func (w *System) Scenario() Scenario { return w.scenario }

// Second that was last stepped; -1 before the first.
func (w *System) Second() int { return w.second }

// Replicas that were asked for.
func (w *System) Replicas() int { return len(w.replicas) }

// start makes a replica that will consume after a start time.
func (w *System) start() *replica {
	r := &replica{
		number: w.started, speed: math.Exp(w.scenario.Spread * w.luck.NormFloat64()),
		crashes: w.luck.Float64() < w.scenario.Crashing,
	}
	w.started++
	w.begin(r)
	return r
}

// Scale sets the number of replicas. The newest go first, and what they hold goes back to the head of the queue.
func (w *System) Scale(replicas int) {
	if replicas == len(w.replicas) {
		return
	}
	w.score.action(w.second, len(w.replicas), replicas)
	for len(w.replicas) > replicas {
		last := w.replicas[len(w.replicas)-1]
		w.returnMessages(last)
		w.replicas = w.replicas[:len(w.replicas)-1]
	}
	if w.scenario.RestartsOnScale {
		w.rolling = slices.Clone(w.replicas)
	}
	for len(w.replicas) < replicas {
		w.replicas = append(w.replicas, w.start())
	}
	w.lookForActive()
}

func (w *System) returnMessages(r *replica) {
	w.leave(r)
	w.score.Redelivered += r.queue.total
	w.waiting[0].putBack(&r.queue)
}

// Step lets one second pass.
func (w *System) Step() {
	w.second++
	for _, r := range w.replicas {
		if r.crashes && w.second >= r.consumes+crashAfter || r.consumes == w.second &&
			w.scenario.CrashingStarts.contain(w.second) {
			w.crash(r)
		}
	}
	w.roll()
	w.lookForActive()
	w.arrive()
	w.becomeDue()
	w.tryAgain()
	w.reset()
	w.dispatch()
	w.serve()
	w.count()
	w.account()
}

func (w *System) reset() {
	for _, at := range w.scenario.Resets {
		if at == w.second {
			clear(w.published)
			clear(w.shown)
			w.delivered, w.counted = 0, 0
		}
	}
}

// count tells topics apart in what was delivered in this second: as in the arrivals of late.
func (w *System) count() {
	for topic := range w.shown {
		first, last := w.partitions(topic)
		for at := first; at < last; at++ {
			w.shown[topic] += (w.delivered - w.counted) * w.share(at)
		}
	}
	w.counted = w.delivered
}

func (w *System) lookForActive() {
	w.active = w.active[:0]
	for _, r := range w.replicas {
		if w.second >= r.consumes {
			w.active = append(w.active, r)
		}
	}
	w.join()
}

// arrive draws the messages of this second.
func (w *System) arrive() {
	s, second := w.scenario, float64(w.second)
	factor := max(0, 1+s.Noise*w.load.NormFloat64())
	rate, sum := max(0, s.Rate(second))*factor, 0.0
	for _, weight := range s.Weights {
		sum += weight
	}
	for i := range w.recent {
		w.recent[i] *= 1 - 1.0/recentSeconds
	}
	for partition, weight := range s.Weights {
		count := w.draw(rate * weight / sum)
		w.recent[0] += count
		w.publish(partition, count)
	}
	for i, more := range s.More {
		count := w.draw(max(0, more(second)) * factor)
		w.recent[i+1] += count
		w.publish(s.Partitions+i, count)
	}
}

// draw is how many messages arrive where mean are expected.
func (w *System) draw(mean float64) float64 {
	if w.scenario.Exact {
		return mean
	}
	return poisson(w.load, mean)
}

// publish takes messages that arrive on a partition, or on a further topic.
func (w *System) publish(at int, count float64) {
	s := w.scenario
	w.published[at] += count
	w.score.Messages += count * (1 - s.Poison)
	w.stuck += count * s.Poison
	good := count * (1 - s.Poison)
	later := good * s.Delayed
	queue := 0
	switch {
	case s.Type == backlog.Failover:
		queue = at % len(w.waiting)
	case s.HotKey != nil:
		hot := (good - later) * s.HotKey(float64(w.second))
		w.waiting[1].push(w.second, hot)
		good -= hot
	}
	w.waiting[queue].push(w.second, good-later)
	if later > 0 {
		w.delay(queue, later, len(w.active) > 0)
	}
}

func (w *System) delay(queue int, count float64, connected bool) {
	due := w.second + int(w.scenario.Delay/time.Second)
	if w.delayed[due] == nil {
		w.delayed[due] = make([]float64, len(w.waiting))
	}
	w.delayed[due][queue] += count
	w.delayedTotal += count
	if connected { // the dispatcher reads only while somebody consumes
		w.delayedKnown += count
	}
}

func (w *System) becomeDue() {
	for queue, count := range w.delayed[w.second] {
		w.waiting[queue].push(w.second, count)
		w.delayedTotal -= count
		w.delayedKnown = max(0, min(w.delayedTotal, w.delayedKnown-count))
	}
	delete(w.delayed, w.second)
	if len(w.active) > 0 {
		w.delayedKnown = w.delayedTotal // it has read on
	}
}

// poisson draws from a Poisson distribution; above 50 a normal one is as good.
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
