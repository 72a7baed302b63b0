// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// life is a Function with a hidden load and capacity, with a decision for every poll.
type life struct {
	random  *rand.Rand
	now     time.Time
	in      policy.Input
	state   policy.State
	backlog float64
	// rate varies around mean, one is the capacity of a replica, and limit that of all, for an external limit.
	mean, rate, one, limit float64
	poll                   time.Duration
}

func newLife(seed uint64) *life {
	r := rand.New(rand.NewPCG(seed, 99))
	l := &life{
		random: r, now: noon(), in: input(1+r.Int32N(10), backlog.Reading{}), mean: math.Exp(r.Float64() * 9),
		limit: math.Inf(1), poll: 10 * time.Second,
	}
	l.rate, l.one = l.mean, l.mean/(1+r.Float64()*20)
	if r.IntN(3) == 0 {
		l.limit = l.mean * (0.5 + r.Float64())
	}
	kinds := []v1alpha1.Strategy{
		{Type: v1alpha1.StrategyCapacity}, backlogStrategy(1 +
			int64(l.mean*10)), rateStrategy("100"), utilizationStrategy(70),
	}
	l.in.Spec.Strategies = kinds[:1+r.IntN(len(kinds))]
	window := r.Int32N(600)
	l.in.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{StabilizationWindowSeconds: &window}}
	return l
}

// next is the input of the next poll.
func (l *life) next() policy.Input {
	r := l.random
	l.now = l.now.Add(l.poll)
	switch r.IntN(40) {
	case 0:
		l.rate = l.mean * r.ExpFloat64() * 3
	case 1:
		l.one *= 0.5 + r.Float64()
	default:
		l.rate = max(0, l.rate*(1+0.05*r.NormFloat64()))
	}
	replicas, seconds := float64(l.in.CurrentReplicas), l.poll.Seconds()
	before := l.backlog
	can := min(l.limit, replicas*l.one)
	done := min(can, l.rate+before/seconds)
	l.backlog = max(0, before+(l.rate-done)*seconds)
	in := l.in
	in.Now = l.now
	in.Reading = reading(math.Floor(l.backlog), l.rate)
	in.Reading.At, in.Reading.Window = l.now, l.poll
	in.Reading.LeastReady = backlog.Known(math.Floor(min(before, l.backlog)))
	in.Reading.LeastUndispatched = in.Reading.LeastReady
	in.Reading.ProcessRate, in.Reading.Consumers = backlog.Known(done), backlog.Known(replicas)
	in.Reading.SteadyConsumers = r.IntN(5) > 0
	in.Reading = timed(in.Reading, replicas, 0.9*done/can, done)
	in.Reading.Blocked = r.IntN(50) == 0
	if r.IntN(30) == 0 {
		in.Reading.PublishRate = backlog.Unknown(backlog.ErrNoRate)
	}
	if r.IntN(50) == 0 {
		in.Unknown = backlog.ErrUnreachable
	}
	return in
}

// step decides for the next poll and applies the decision.
func (l *life) step() policy.Decision {
	var decision policy.Decision
	decision, l.state = policy.Decide(l.next(), l.state)
	l.in.CurrentReplicas = decision.Replicas
	return decision
}
