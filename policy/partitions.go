// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

// failoverReplicas is the least number of replicas at which none has more than limit to do, when the i-th of n is active
// on the partitions i, i+n, i+2n...; where no number is enough, the least at which the busiest has the least.
//
// Source: Pulsar's AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer: partition modulo consumers.
func failoverReplicas(loads []float64, limit float64) int32 {
	best, least := 1, 0.0
	for n := 1; n <= len(loads); n++ {
		busiest := 0.0
		for i := range n {
			sum := 0.0
			for p := i; p < len(loads); p += n {
				sum += loads[p]
			}
			busiest = max(busiest, sum)
		}
		if busiest <= limit {
			return int32(n) //nolint:gosec // as many as partitions
		}
		if n == 1 || busiest < least*(1-hair) {
			best, least = n, busiest
		}
	}
	return int32(best) //nolint:gosec // as many as partitions
}

// partitionLoads are the planned rates of the partitions, and those with what waits on each worked off within the
// objective; not ok while the rate of any is unknown.
func partitionLoads(in Input, l load) (rates, loads []float64, ok bool) {
	total, err := in.Reading.PublishRate.Value()
	if err != nil || total <= 0 {
		return nil, nil, false
	}
	for _, p := range in.Partitions {
		rate, err := p.PublishRate.Value()
		if err != nil {
			return nil, nil, false
		}
		ready, err := p.Ready.Value()
		if err != nil {
			return nil, nil, false
		}
		rate *= l.planned / total
		rates = append(rates, rate)
		loads = append(loads, rate+max(0, ready-rate*l.normal())/l.objective)
	}
	return rates, loads, len(rates) > 0
}
