// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// lies are answers of Pulsar's admin service that are wrong for a while, which nothing else confirms.
func lies() []Scenario {
	const load = 300
	phantoms := model.Span{From: 30 * minute, To: 30*minute + 30}
	drifts := model.Span{From: 30 * minute, To: 50 * minute}
	flags := model.Span{From: 30 * minute, To: 35 * minute}
	drifted := func(second int, factor float64) int64 { return int64(load * drift(drifts, second, factor)) }
	all := []Scenario{
		// 6,000 messages a second more, in the backlog too, that never were.
		lie("phantoms", phantoms, func(second int, p *backlog.PartitionSample) {
			if told := int64(6000 * (second - phantoms.From)); second < phantoms.To {
				p.PublishedMessages, *p.AddedEntries = p.PublishedMessages+told, *p.AddedEntries+told
				p.Subscriptions[0].BacklogEntries += told
			}
		}),
		lie("published-drifts-up", drifts, func(second int, p *backlog.PartitionSample) {
			p.PublishedMessages += drifted(second, 1.05)
		}),
		lie("published-drifts-down", drifts, func(second int, p *backlog.PartitionSample) {
			p.PublishedMessages += drifted(second, 0.95)
		}),
		lie("delivered-drifts-up", drifts, func(second int, p *backlog.PartitionSample) {
			p.Subscriptions[0].DeliveredMessages += drifted(second, 1.05)
		}),
		lie("delivered-drifts-down", drifts, func(second int, p *backlog.PartitionSample) {
			p.Subscriptions[0].DeliveredMessages += drifted(second, 0.95)
		}),
	}
	for i := range all {
		all[i].Rate = model.Constant(load)
	}
	return append(all,
		lie("wrongly-failover", flags, func(second int, p *backlog.PartitionSample) {
			if second < flags.To {
				p.Subscriptions[0].Type = backlog.Failover
			}
		}),
		lie("wrongly-blocked", flags, func(second int, p *backlog.PartitionSample) {
			p.Subscriptions[0].Blocked = second < flags.To
		}),
		lie("wrongly-throttled", flags, func(second int, p *backlog.PartitionSample) {
			p.Subscriptions[0].ThrottledEvents += int64(min(second, flags.To) - flags.From)
		}),
	)
}

// lie changes each partition from the beginning of a time on. Shortly after it, the load triples for half an hour.
func lie(name string, during model.Span, change func(second int, p *backlog.PartitionSample)) Scenario {
	s := base(name, 2*hour, steps(map[int]float64{0: 150, during.From + 20: 450, during.From + 30*minute: 150}))
	s.Initial, s.Lies = 4, model.Spans{during}
	s.Falsify = func(second int, answer *backlog.TopicSample) {
		for i := range answer.Partitions {
			if second >= during.From {
				change(second, &answer.Partitions[i])
			}
		}
	}
	return Scenario{Scenario: s}
}

// drift is by how many seconds a counter is ahead that grows faster by a factor every ten seconds, up to four times.
func drift(during model.Span, second int, factor float64) float64 {
	ahead := 0.0
	for at := during.From; at < min(second, during.To); at++ {
		ahead += min(4, max(0.25, math.Pow(factor, float64(at-during.From)/10))) - 1
	}
	return ahead
}
