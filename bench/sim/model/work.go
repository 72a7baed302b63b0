// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"

// measuredShare is the default of Scenario.Measured. Saturated Java instances of Pulsar 4.0.8 showed 0.98 to 0.995 for
// calls of 1 to 20 ms: 0.02 to 0.25 ms pass between two calls.
const measuredShare = 0.98

// work is what one replica could do and has to do in a second: messages that it finishes, of which the work is that of
// used messages, and callTime is the time of the calls that end.
type work struct{ potential, failing, retried, wanted, used, callTime float64 }

// shift is one second of work of the consuming replicas.
type shift struct {
	*subscription

	second int
	score  *Score
	// throws is the share of the messages with which the function throws.
	throws float64
}

func newShift(s *System) shift {
	one := shift{subscription: &s.subscription, second: s.second, score: &s.score}
	if s.scenario.Failing != nil {
		one.throws = s.scenario.Failing(float64(s.second))
	}
	return one
}

// run lets the replicas work, and returns how many computed.
func (s shift) run() (computing float64) {
	active := s.set.active
	if len(active) == 0 {
		return 0
	}
	works, share := s.plan()
	for i, r := range active {
		done := works[i].wanted * share
		s.finish(i, done)
		s.retry(r, works[i].retried)
		r.processed += done * (1 - s.throws)
		r.failed += works[i].failing + done*s.throws
		s.topics.delivered += works[i].failing
		r.busy += s.busy(works[i], share)
		computing += (works[i].used*share + works[i].failing + works[i].retried) / works[i].potential
	}
	return computing
}

// plan is the work of each replica, and the share of it that the downstream limit allows.
func (s shift) plan() (works []work, share float64) {
	active := s.set.active
	failing, retried := s.poisoned/redelivery/float64(len(active)), s.retries.total/float64(len(active))
	works = make([]work, len(active))
	sum := 0.0
	for i, r := range active {
		potential := r.capacity(s.scenario, s.second) * r.warmth(s.second, s.scenario.WarmUp)
		one := work{potential: potential, failing: min(failing, potential)}
		one.retried = min(retried, potential-one.failing)
		if left := potential - one.failing - one.retried; s.scenario.Calls != nil {
			one.wanted, one.used, one.callTime = s.calls(r, left, potential)
		} else {
			one.wanted = min(s.available(i), left)
			one.used = one.wanted
		}
		works[i] = one
		sum += one.wanted
	}
	if s.scenario.Downstream != nil && sum > 0 {
		share = min(1, s.scenario.Downstream(float64(s.second))/sum)
		if share < 1 {
			s.score.lastLimited = s.second
		}
		return works, share
	}
	return works, 1
}

// calls works on one whole message after the other, up to a replica's potential of a second: it returns the messages
// with ended calls, the work, and the time of the ended calls.
func (s shift) calls(r *replica, left, potential float64) (finished, used, ended float64) {
	for left > dust {
		if r.call <= dust {
			if r.queue.total-finished < 1-dust {
				return finished, used, ended
			}
			r.call = max(2*dust, s.scenario.Calls(s.random))
		}
		done := min(left, r.call)
		left, used = left-done, used+done
		r.call, r.callTime = r.call-done, r.callTime+done/potential
		if r.call <= dust {
			finished, ended = finished+1, ended+r.callTime
			r.call, r.callTime = 0, 0
		}
	}
	return finished, used, ended
}

// busy is the instance's metric for a second.
func (s shift) busy(one work, share float64) float64 {
	if s.scenario.Calls != nil {
		return s.scenario.Measured * one.callTime
	}
	load := (one.wanted + one.failing + one.retried) / one.potential
	if share < 1 && one.wanted > 0 {
		load = 1 // it waits for downstream inside the call
	}
	if s.scenario.Asynchronous {
		if load > 0.99 {
			return 0.9
		}
		return 0.02 * load
	}
	return s.scenario.Measured * load
}

// available is what the i-th consuming replica could work on.
func (s shift) available(i int) float64 {
	if s.scenario.Type != backlog.Failover {
		return s.set.active[i].queue.total
	}
	sum := 0.0
	for p := i; p < len(s.waiting); p += len(s.set.active) {
		sum += s.waiting[p].total
	}
	return sum
}

// finish removes messages from the i-th consuming replica's work.
func (s shift) finish(i int, count float64) {
	if count <= 0 {
		return
	}
	if s.scenario.Type != backlog.Failover {
		s.attempt(&s.set.active[i].queue, count, s.throws)
		return
	}
	sum := s.available(i)
	for p := i; p < len(s.waiting); p += len(s.set.active) {
		s.attempt(&s.waiting[p], count*s.waiting[p].total/sum, s.throws)
	}
	s.topics.delivered += count
}

// attempt processes messages of a queue. A share throws: those are negatively acknowledged, stay at their consumer for
// a minute and are redelivered.
func (s shift) attempt(from *queue, count, throws float64) {
	var failed queue
	from.pop(count, func(c cohort) {
		s.score.finished(c.at, s.second, c.count*(1-throws), s.scenario.Objective)
		failed.push(c.at, c.count*throws)
	})
	s.nacked[s.second%redelivery].putBack(&failed)
}

// retry processes messages that failed before. All of them fail again while the function throws.
func (s shift) retry(r *replica, count float64) {
	if count <= 0 {
		return
	}
	throws := 0.0
	if s.throws > 0 {
		throws = 1
	}
	before := s.retries.total
	s.attempt(&s.retries, count, throws)
	count = before - s.retries.total
	r.received += count
	r.processed += count * (1 - throws)
	r.failed += count * throws
	s.topics.delivered += count
}
