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

// share is the load of one partition, in messages per second. The number-th replica of n is active on the partitions
// of every topic that have an index equal to the number modulo n.
//
// Source: Pulsar's AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer: partition modulo consumers.
type share struct {
	index int
	rate  float64
	// load is the rate with what waits there worked off in time.
	load float64
}

func byRate(s share) float64 { return s.rate }
func byLoad(s share) float64 { return s.load }

// failoverReplicas is the least number of replicas, up to a bound, at which none has more than limit to do; where no
// number is enough, the least at which the busiest has the least. A partition that is more than a replica can do counts
// as all that one can: what the others need is the same however much waits there.
func failoverReplicas(shares []share, of func(share) float64, limit float64, bound int32) int32 {
	most, loads, total := 1, make([]float64, len(shares)), 0.0
	for i, s := range shares {
		most, loads[i] = max(most, s.index+1), min(limit, of(s))
		total += loads[i]
	}
	most = max(1, min(most, int(bound)))
	sums := make([]float64, most)
	for n := max(1, int(math.Ceil(total/limit-hair))); n <= most; n++ { // fewer cannot have it all
		if busiest(shares, loads, sums[:n], limit) <= limit {
			return int32(n) //nolint:gosec // at most bound
		}
	}
	best, least := 1, 0.0
	for n := 1; n <= most; n++ {
		if top := busiest(shares, loads, sums[:n], math.Inf(1)); n == 1 || top < least*(1-hair) {
			best, least = n, top
		}
	}
	return int32(best)
}

// busiest is what the busiest of as many replicas as there are sums has to do, or the first that is found above enough.
func busiest(shares []share, loads, sums []float64, enough float64) float64 {
	clear(sums)
	top := 0.0
	for j, s := range shares {
		i := s.index % len(sums)
		sums[i] += loads[j]
		if top = max(top, sums[i]); top > enough {
			return top
		}
	}
	return top
}

// overloaded says that one of so many replicas has more than limit to do.
func overloaded(shares []share, of func(share) float64, replicas int, limit float64) bool {
	loads := make([]float64, len(shares))
	for i, s := range shares {
		loads[i] = of(s)
	}
	return busiest(shares, loads, make([]float64, replicas), limit) > limit
}

// indexOf the i-th partition of a reading. Topics that are not partitioned count as partitions of one topic: which
// replica gets them depends on who was there first.
func indexOf(p backlog.PartitionReading, i int) int {
	if p.Index < 0 {
		return i
	}
	return p.Index
}

// partitionShares are the planned loads of the partitions; not ok while any is unknown.
func partitionShares(in Input, l load) (shares []share, ok bool) {
	total, err := in.Reading.PublishRate.Value()
	if err != nil {
		return nil, false
	}
	scale := 1.0
	if total > 0 {
		scale = l.planned / total
	}
	shares = make([]share, 0, len(in.Partitions))
	for i, p := range in.Partitions {
		ready, err := p.Ready.Value()
		if errors.Is(err, backlog.ErrSubscriptionNotFound) {
			continue // it has had no consumer yet
		}
		rate, unknown := p.PublishRate.Value()
		if err != nil || unknown != nil {
			return nil, false
		}
		rate *= scale
		shares = append(shares, share{index: indexOf(p, i), rate: rate, load: rate + max(0, ready-rate*l.normal())/l.drain})
	}
	return shares, len(shares) > 0
}

// useful is how many replicas of a Failover subscription can have a partition; not known while nothing is known of
// those. An Exclusive one refuses all consumers but the first.
func useful(in Input) (replicas int32, known bool) {
	if in.Reading.Type == backlog.Exclusive {
		return 1, true
	}
	most := 0
	for i, p := range in.Partitions {
		most = max(most, indexOf(p, i)+1)
	}
	if most == 0 {
		most = in.Reading.Partitions
	}
	limited := most > 0 && in.Reading.Type == backlog.Failover && !in.without(PartFailover)
	return int32(in.replicasOf(float64(most))), limited
}

// unknownLoad is why a load that replicas are sized for is not known, or nothing. The last known one is no reason to go
// down.
func unknownLoad(in Input) error {
	if !slices.ContainsFunc(strategies(in.Spec), func(s v1alpha1.Strategy) bool {
		return s.Type == v1alpha1.StrategyCapacity || s.Type == v1alpha1.StrategyRatePerReplica
	}) {
		return nil
	}
	if _, err := in.Reading.PublishRate.Value(); err != nil {
		return fmt.Errorf("what arrives is not known: %w", err)
	}
	if in.Reading.Type != backlog.Failover {
		return nil
	}
	for _, p := range in.Partitions {
		_, err := p.Ready.Value()
		if err == nil {
			_, err = p.PublishRate.Value()
		}
		if err != nil && !errors.Is(err, backlog.ErrSubscriptionNotFound) {
			return fmt.Errorf("partition %d of %s is not known: %w", p.Index, p.Topic, err)
		}
	}
	return nil
}

// failover sizes for the busiest replica: each partition has one active consumer.
func (l load) failover(in Input) (recommendation, bool) {
	shares, ok := partitionShares(in, l)
	if !ok {
		return recommendation{}, false
	}
	each := float64(in.perReplica()) // consumers, each of which is active on partitions of its own
	one, cautious, most := l.one/each, l.cautious/each, in.Spec.MaxReplicas*in.perReplica()
	steady, drain := failoverReplicas(shares, byRate, l.utilisation*one, most), failoverReplicas(shares, byLoad, one, most)
	replicas := func(consumers int32) int32 { return int32(in.replicasOf(float64(consumers))) }
	a := recommendation{
		replicas: replicas(max(steady, drain)),
		steady:   replicas(failoverReplicas(shares, byRate, l.utilisation*cautious, most)), drain: replicas(drain),
		equation: fmt.Sprintf("%d of %d partitions' consumers keep the busiest within %s/s: %s/s arriving, %s waiting",
			max(steady, drain), len(shares),
			short(one), short(l.planned), short(l.excess)),
		terms: l.terms(),
	}
	if n := int(in.CurrentReplicas * in.perReplica()); n > 0 {
		a.overloaded = overloaded(shares, byRate, n, full*one) || overloaded(shares, byLoad, n, one)
	}
	return a, true
}
