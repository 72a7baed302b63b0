// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// Capacity is what one replica adds at a second, now or soon, in messages per second: the mean of the consuming ones.
// If the slowest prefetch more messages than they finish within the objective, it is theirs: each gets as many messages
// as any other until its receive queue is full. Among controllers only an oracle knows it.
func (s *System) Capacity(second float64) float64 {
	capacity := s.scenario.Capacity(second)
	if s.scenario.Speed == nil || len(s.set.active) == 0 {
		return capacity
	}
	sum, slowest := 0.0, 1.0
	for _, r := range s.set.active {
		speed := s.meanSpeed(r)
		sum, slowest = sum+speed, min(slowest, speed)
	}
	if s.scenario.ReceiveQueue > slowest*capacity*s.scenario.Objective.Seconds() {
		return capacity * slowest
	}
	return capacity * sum / float64(len(s.set.active))
}

// meanSpeed is the factor of a replica's capacity over the next five minutes: pauses are part of it.
func (s *System) meanSpeed(r *replica) float64 {
	const ahead, step = 300, 10
	sum := 0.0
	for second := s.second; second < s.second+ahead; second += step {
		sum += s.scenario.Speed(r.number, second, second-r.consumes)
	}
	return sum * step / ahead
}
