// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package trace

import "fmt"

// edge is how long, in seconds, the rate takes from one row to the next where rows have messages.
const edge = 1e-3

// Spread makes rates of messages, which are spread evenly from their row until the next. The last row lasts
// lastLength, in seconds.
func (l Load) Spread(lastLength float64) (Load, error) {
	even := Load{start: l.start}
	for i, begin := range l.at {
		last := i+1 == len(l.at)
		next := begin + lastLength
		if !last {
			next = l.at[i+1]
		}
		length := next - begin
		rate := l.rates[i] / length
		if rate > maxRate {
			return Load{}, fmt.Errorf("%g messages within %g s are more than %g per second: are timestamps in seconds?",
				l.rates[i], length, maxRate)
		}
		end := next
		if !last {
			end -= min(edge, length/2)
		}
		for _, at := range []float64{begin, end} {
			if at == end && !last && (end <= begin || end >= next) {
				continue // rows are as close as numbers can be
			}
			even.at, even.rates = append(even.at, at), append(even.rates, rate)
			even.replicas = append(even.replicas, l.replicas[i])
		}
	}
	return even, nil
}
