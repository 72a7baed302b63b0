// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"

// dispatch fills the receive queues of consuming replicas evenly. With Failover the active consumer of a partition
// takes its messages directly from there.
func (b *subscription) dispatch(second int) {
	if b.scenario.Type == backlog.Failover {
		return
	}
	b.drain(second)
	takers := b.set.active
	if b.scenario.Calls != nil {
		b.dispatchWhole(takers)
		return
	}
	b.dispatchHot(takers)
	free := &b.waiting[freeQueue]
	for len(takers) > 0 && free.total > dust {
		room := takers[:0:0]
		least, open := b.scenario.ReceiveQueue/dust, 0.0
		for _, r := range takers {
			own := 1 - r.blocked
			if left := b.scenario.ReceiveQueue - r.queue.total; left > dust && own > dust {
				room, least, open = append(room, r), min(least, left/own), open+own
			}
		}
		if len(room) == 0 {
			return
		}
		each := min(least, free.total/open)
		free.pop(each*open, func(c cohort) {
			for _, r := range room {
				part := c.count * (1 - r.blocked) / open
				r.queue.push(c.at, part)
				r.received += part
			}
			b.topics.delivered += c.count
		})
		takers = room
	}
}

// dispatchHot dispatches the messages of a hot key to its one consumer: the oldest.
func (b *subscription) dispatchHot(takers []*replica) {
	if b.scenario.HotKey == nil || len(takers) == 0 {
		return
	}
	r := takers[0]
	b.waiting[hotQueue].pop(max(0, b.scenario.ReceiveQueue-r.queue.total), func(c cohort) {
		r.queue.push(c.at, c.count)
		r.received += c.count
		b.topics.delivered += c.count
	})
}

// dispatchWhole dispatches whole messages in turn, to replicas with room.
func (b *subscription) dispatchWhole(takers []*replica) {
	free := &b.waiting[freeQueue]
	for full := 0; full < len(takers) && free.total >= 1-dust; b.turn++ {
		r := takers[b.turn%len(takers)]
		if full++; b.scenario.ReceiveQueue-r.queue.total < 1-dust {
			continue
		}
		full = 0
		free.pop(1, func(c cohort) {
			r.queue.push(c.at, c.count)
			r.received += c.count
			b.topics.delivered += c.count
		})
	}
}
