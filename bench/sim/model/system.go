// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// System is a running Scenario. It is not safe for concurrent use.
type System struct {
	scenario     Scenario
	second       int
	arrivals     arrivals
	topics       topics
	subscription subscription
	set          statefulSet
	// computing is the number of replicas that computed in the last second.
	computing float64
	score     Score
}

// New returns the system before its first second. Equal seeds give equal loads whatever a controller does.
func New(scenario Scenario, seed uint64) *System {
	s := &System{scenario: scenario.withDefaults(), second: -1}
	s.arrivals = arrivals{scenario: &s.scenario, random: newRandom(seed, 1)}
	s.score.from = s.scenario.ScoredFrom
	s.topics = newTopics(&s.scenario)
	s.set = statefulSet{scenario: &s.scenario, random: newRandom(seed, 2)}
	s.subscription = newSubscription(&s.scenario, &s.topics, &s.set, newRandom(seed, 3))
	for range s.scenario.Initial {
		r := s.set.start(s.second)
		r.consumes = -int(math.Ceil(s.scenario.WarmUp)) // warm from the start
		r.unready, r.ready = r.consumes, r.consumes
		s.set.replicas = append(s.set.replicas, r)
	}
	s.set.connect(s.second)
	return s
}

func newRandom(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(seed, stream))
}

// Scenario with its defaults.
func (s *System) Scenario() Scenario { return s.scenario }

// Second that was last stepped; -1 before the first.
func (s *System) Second() int { return s.second }

// Time of the second that was last stepped.
func (s *System) Time() time.Time { return at(s.second) }

func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0) }

// Replicas that were requested.
func (s *System) Replicas() int { return len(s.set.replicas) }

// Scale sets the number of replicas. The newest are removed first, and their messages return to the head of the queue.
func (s *System) Scale(replicas int) {
	if replicas == len(s.set.replicas) {
		return
	}
	s.score.action(s.second, len(s.set.replicas), replicas)
	for len(s.set.replicas) > replicas {
		last := len(s.set.replicas) - 1
		s.redeliver(s.set.replicas[last])
		s.set.replicas = s.set.replicas[:last]
	}
	if s.scenario.RestartsOnScale {
		s.set.outdated = slices.Clone(s.set.replicas)
	}
	for len(s.set.replicas) < replicas {
		s.set.replicas = append(s.set.replicas, s.set.start(s.second))
	}
	s.set.connect(s.second)
}

// redeliver disconnects a replica and returns its messages to the head of the queue.
func (s *System) redeliver(r *replica) {
	s.set.disconnect(r)
	s.score.Ended++
	s.score.Redelivered += r.queue.total
	s.subscription.waiting[0].putBack(&r.queue)
}

// Step simulates one second.
func (s *System) Step() {
	s.second++
	for _, r := range s.set.failing(s.second) {
		s.redeliver(r)
		s.set.crash(r, s.second)
	}
	if r := s.set.nextOutdated(s.second); r != nil {
		s.redeliver(r)
		s.set.replace(r, s.second)
	}
	s.set.connect(s.second)
	arrived := s.arrivals.draw(s.second)
	s.score.arrived(s.second, arrived, s.scenario.Poison)
	s.topics.publish(arrived)
	s.subscription.publish(arrived, s.second)
	s.subscription.deliverDelayed(s.second)
	s.subscription.redeliverNacked(s.second)
	if slices.Contains(s.scenario.Resets, s.second) {
		s.topics.reset()
	}
	s.subscription.dispatch(s.second)
	s.computing = newShift(s).run()
	s.topics.attribute()
	s.score.account(s)
}

// Run simulates all seconds with the replicas that a controller wants, and returns the messages finished in each.
func (s *System) Run(replicas func(*System) int) (finished []float64) {
	before := 0.0
	for range s.scenario.Seconds {
		s.Step()
		s.Scale(replicas(s))
		finished, before = append(finished, s.score.Finished-before), s.score.Finished
	}
	return finished
}

// limitedFor is how long a limit shows after it was reached: a rate and a poll cover up to 20 s, and a ceiling needs
// three polls.
const limitedFor = 60

// Limited reports whether replicas lately got less than they could use from downstream, so that more would not help.
func (s *System) Limited() bool {
	return s.score.lastLimited > 0 && s.second-s.score.lastLimited <= limitedFor
}

// Score of all seconds so far. Queued messages count as late if they already are.
func (s *System) Score() Score {
	score := s.score
	s.subscription.each(func(q *queue) {
		for _, c := range q.cohorts[q.head:] {
			if c.at >= score.from && float64(s.second-c.at) > s.scenario.Objective.Seconds() {
				score.Late += c.count
			}
		}
	})
	return score
}
