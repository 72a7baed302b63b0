// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// recentSeconds is the time constant of the arrivals that determine the topics' shares.
const recentSeconds = 60

// topics are the broker's counters of the input topics.
type topics struct {
	scenario *Scenario
	// published messages since the last reset, by partition, then by further topic.
	published []float64
	// recent arrivals of a topic, with exponential decay.
	recent []float64
	// delivered messages since the last reset. byTopic are those of each topic, and attributed their sum.
	delivered, attributed float64
	byTopic               []float64
}

func newTopics(s *Scenario) topics {
	return topics{
		scenario: s, published: make([]float64, s.Partitions+len(s.More)),
		recent: make([]float64, 1+len(s.More)), byTopic: make([]float64, 1+len(s.More)),
	}
}

// publish counts arrivals, by partition, then by further topic.
func (t *topics) publish(arrived []float64) {
	for i := range t.recent {
		t.recent[i] *= 1 - 1.0/recentSeconds
	}
	for i, count := range arrived {
		t.recent[max(0, i-t.scenario.Partitions+1)] += count
		t.published[i] += count
	}
}

// reset starts all counters again at 0.
func (t *topics) reset() {
	clear(t.published)
	clear(t.byTopic)
	t.delivered, t.attributed = 0, 0
}

// attribute divides the deliveries of this second among the topics, in proportion to recent arrivals.
func (t *topics) attribute() {
	for topic := range t.byTopic {
		first, last := t.partitions(topic)
		for i := first; i < last; i++ {
			t.byTopic[topic] += (t.delivered - t.attributed) * t.share(i)
		}
	}
	t.attributed = t.delivered
}

// partitions of a topic in published: from one to before another.
func (t *topics) partitions(topic int) (first, last int) {
	if topic == 0 {
		return 0, t.scenario.Partitions
	}
	return t.scenario.Partitions + topic - 1, t.scenario.Partitions + topic
}

// share of a partition, or of a further topic, in the model's common queue: its share of the arrivals.
func (t *topics) share(i int) float64 {
	all := 0.0
	for _, recent := range t.recent {
		all += recent
	}
	if further := i - t.scenario.Partitions; further >= 0 {
		return share(t.recent[1+further], all, len(t.recent))
	}
	own := t.scenario.Weights[i] / t.scenario.totalWeight()
	if len(t.recent) == 1 {
		return own
	}
	return own * share(t.recent[0], all, len(t.recent))
}

func share(part, all float64, parts int) float64 {
	if all <= 0 {
		return 1 / float64(parts)
	}
	return part / all
}

// deliveredOf a partition, or of a further topic.
func (t *topics) deliveredOf(i int) float64 {
	if len(t.recent) == 1 {
		return t.share(i) * t.delivered
	}
	if further := i - t.scenario.Partitions; further >= 0 {
		return t.byTopic[1+further]
	}
	return t.byTopic[0] * t.scenario.Weights[i] / t.scenario.totalWeight()
}
