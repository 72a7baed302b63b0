// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// shares are the loads of partitions, in messages per second: their arrivals, and these with the rate that drains the
// backlog in time. Of n replicas, replica i is active on partitions of every topic with an index equal to i modulo n.
//
// Source: Pulsar's AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer: partition modulo consumers.
type shares struct {
	indices      []int
	rates, loads []float64
}

// replicas is the minimum number of replicas at which no replica has more load than limit. If no number suffices, it is
// the number with the least load on the busiest replica. A partition beyond the limit counts as the limit, so that its
// backlog does not change the number that the other partitions need.
func (s shares) replicas(of []float64, limit float64, bound int32) int32 {
	most, loads, total := 1, make([]float64, len(of)), 0.0
	for i, load := range of {
		most, loads[i] = max(most, s.indices[i]+1), min(limit, load)
		total += loads[i]
	}
	most = max(1, min(most, int(bound)))
	sums := make([]float64, most)
	for n := max(1, int(math.Ceil(total/limit-epsilon))); n <= most; n++ { // fewer cannot process the total
		if s.busiest(loads, sums[:n], limit) <= limit {
			return int32(n) //nolint:gosec // at most bound
		}
	}
	best, least := 1, 0.0
	for n := 1; n <= most; n++ {
		if top := s.busiest(loads, sums[:n], math.Inf(1)); n == 1 || top < least*(1-epsilon) {
			best, least = n, top
		}
	}
	return int32(best)
}

// busiest is the load of the busiest replica of len(sums), or the first load above enough.
func (s shares) busiest(loads, sums []float64, enough float64) float64 {
	clear(sums)
	top := 0.0
	for j, index := range s.indices {
		i := index % len(sums)
		sums[i] += loads[j]
		if top = max(top, sums[i]); top > enough {
			return top
		}
	}
	return top
}

// indexOf is the index of the i-th partition of a reading. Non-partitioned topics count as partitions of one topic:
// Pulsar assigns them in the order of subscription.
func indexOf(p backlog.PartitionReading, i int) int {
	if p.Index < 0 {
		return i
	}
	return p.Index
}

// partitionShares are the planned loads of the partitions. ok is false while any is unknown, unless the reading is
// partial for that reason.
func partitionShares(in Input, l load) (s shares, ok bool) {
	total, err := in.Reading.PublishRate.LowerBound()
	if err != nil {
		return s, false
	}
	scale := 1.0
	if total > 0 {
		scale = l.arriving / total
	}
	for i, p := range in.Partitions {
		ready, rate, err := loadOf(p)
		switch {
		case errors.Is(err, backlog.ErrSubscriptionNotFound):
			continue // no consumer has subscribed there yet
		case err != nil && in.Reading.Coverage.Complete():
			return s, false
		case err != nil:
			continue
		}
		rate *= scale
		if l.failing {
			ready = 0 // as in ahead
		}
		s.indices, s.rates = append(s.indices, indexOf(p, i)), append(s.rates, rate)
		s.loads = append(s.loads, rate+max(0, ready-rate*l.normal())/l.drain)
	}
	return s, len(s.indices) > 0
}

// loadOf is the backlog of a partition and its publish rate.
func loadOf(p backlog.PartitionReading) (ready, rate float64, err error) {
	if ready, err = p.Ready.Value(); err == nil {
		rate, err = p.PublishRate.Value()
	}
	return ready, rate, err
}

// mostSegments of a scalable topic: Pulsar splits none beyond (scalableTopicMaxSegments).
const mostSegments = 64

// UsefulReplicas is the number of replicas that can have a partition; unknown without partitions. A Failover partition
// has one active consumer, as a segment of Stream has, and an Exclusive subscription refuses all consumers but the
// first.
func UsefulReplicas(in Input) (replicas int32, known bool) {
	if in.Reading.Type == backlog.Exclusive {
		return 1, true
	}
	if in.Reading.Type == backlog.Stream {
		return int32(in.replicasOf(mostSegments)), true
	}
	most := 0
	for i, p := range in.Partitions {
		most = max(most, indexOf(p, i)+1)
	}
	if most == 0 {
		most = in.Reading.Partitions
	}
	limited := most > 0 && in.Reading.Type == backlog.Failover
	return int32(in.replicasOf(float64(most))), limited
}

// unknownLoad is the reason that the load to size for is unknown; nil if it is known. An old load does not justify a
// scale-down.
func unknownLoad(in Input) error {
	if !slices.ContainsFunc(strategies(in.Spec), func(s v1alpha1.Strategy) bool {
		return s.Type == v1alpha1.StrategyCapacity || s.Type == v1alpha1.StrategyRatePerReplica
	}) {
		return nil
	}
	if _, err := in.Reading.PublishRate.Value(); err != nil {
		return fmt.Errorf("the publish rate is unknown: %w", err)
	}
	if in.Reading.Type != backlog.Failover {
		return nil
	}
	for _, p := range in.Partitions {
		if _, _, err := loadOf(p); err != nil && !errors.Is(err, backlog.ErrSubscriptionNotFound) {
			return fmt.Errorf("partition %d of %s is unknown: %w", p.Index, p.Topic, err)
		}
	}
	return nil
}

// Unsupported is why the strategies can never decide: Pulsar does not report the load that they need; nil if it does.
func Unsupported(in Input) error {
	if err := unknownLoad(in); errors.Is(err, backlog.ErrNotReported) {
		return fmt.Errorf("%w: use strategy BacklogPerReplica", err)
	}
	return nil
}

// failover sizes for the busiest replica: each partition has one active consumer.
func (l load) failover(in Input) (recommendation, bool) {
	s, ok := partitionShares(in, l)
	if !ok {
		return recommendation{}, false
	}
	each := float64(in.perReplica()) // consumers, each of which is active on partitions of its own
	one, most := l.capacity/each, in.Spec.MaxReplicas*in.perReplica()
	steady, drain := s.replicas(s.rates, l.utilization*one, most), s.replicas(s.loads, one, most)
	replicas := func(consumers int32) int32 { return int32(in.replicasOf(float64(consumers))) }
	needed := replicas(max(steady, drain))
	a := recommendation{
		replicas: needed, steady: replicas(steady), needed: needed,
		equation: fmt.Sprintf("%d of %d partitions' consumers keep the busiest within %s/s: %s/s arriving, %s backlog",
			max(steady, drain), len(s.indices), short(one), short(l.arriving), short(l.excess)),
		terms: l.terms(l.excess),
	}
	if n := int(in.CurrentReplicas * in.perReplica()); n > 0 {
		sums, full := make([]float64, n), nearlyFull*one
		a.overloaded = s.busiest(s.rates, sums, full) > full || s.busiest(s.loads, sums, one) > one
	}
	return a, true
}
