// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// dispatch fills the receive queues of consuming replicas, evenly. With Failover replicas take from their partitions as
// they go: who is active on a partition gets all of it.
func (w *System) dispatch() {
	if w.scenario.Type == backlog.Failover {
		return
	}
	w.drain()
	takers := w.active
	w.dispatchHot(takers)
	for len(takers) > 0 && w.waiting[0].total > dust {
		room := takers[:0:0]
		least, open := w.scenario.ReceiveQueue/dust, 0.0
		for _, r := range takers {
			own := 1 - r.blocked
			if free := w.scenario.ReceiveQueue - r.queue.total; free > dust && own > dust {
				room, least, open = append(room, r), min(least, free/own), open+own
			}
		}
		if len(room) == 0 {
			return
		}
		each := min(least, w.waiting[0].total/open)
		w.waiting[0].pop(each*open, func(p parcel) {
			for _, r := range room {
				part := p.count * (1 - r.blocked) / open
				r.queue.push(p.at, part)
				r.received += part
			}
			w.delivered += p.count
		})
		takers = room
	}
}

// dispatchHot gives the messages of a hot key to the one consumer that has it: the oldest.
func (w *System) dispatchHot(takers []*replica) {
	if w.scenario.HotKey == nil || len(takers) == 0 {
		return
	}
	r := takers[0]
	w.waiting[1].pop(max(0, w.scenario.ReceiveQueue-r.queue.total), func(p parcel) {
		r.queue.push(p.at, p.count)
		r.received += p.count
		w.delivered += p.count
	})
}

// work is what one replica could do and has to do in a second.
type work struct{ potential, failing, again, wanted float64 }

// serve lets consuming replicas work for a second.
func (w *System) serve() {
	consuming := w.active
	w.computing = 0
	if len(consuming) == 0 {
		return
	}
	capacity := w.scenario.Capacity(float64(w.second))
	failing, again := w.stuck/redelivery/float64(len(consuming)), w.again.total/float64(len(consuming))
	works := make([]work, len(consuming))
	sum := 0.0
	for i, r := range consuming {
		potential := capacity * r.speed * r.warmth(w.second, w.scenario.WarmUp)
		one := work{potential: potential, failing: min(failing, potential)}
		one.again = min(again, potential-one.failing)
		one.wanted = min(w.available(i, len(consuming)), potential-one.failing-one.again)
		works[i] = one
		sum += one.wanted
	}
	share := 1.0
	if w.scenario.Downstream != nil && sum > 0 {
		share = min(1, w.scenario.Downstream(float64(w.second))/sum)
	}
	throws := w.throws()
	for i, r := range consuming {
		done := works[i].wanted * share
		w.finish(i, len(consuming), done, throws)
		w.retry(r, works[i].again, throws)
		r.processed += done * (1 - throws)
		r.failed += works[i].failing + done*throws
		w.delivered += works[i].failing
		r.busy += w.busy(works[i], share)
		w.computing += (done + works[i].failing + works[i].again) / works[i].potential
	}
}

// measuredShare is the default of Scenario.Measured. Saturated Java instances of Pulsar 4.0.8 showed 0.98 to 0.995 for
// calls of 1 to 20 ms: 0.02 to 0.25 ms pass between two calls (bench/replay, coverage).
const measuredShare = 0.98

// busy is what the metric of the instance says of a second.
func (w *System) busy(one work, share float64) float64 {
	load := (one.wanted + one.failing + one.again) / one.potential
	if share < 1 && one.wanted > 0 {
		load = 1 // it waits for what it depends on, inside the call
	}
	if w.scenario.Asynchronous {
		if load > 0.99 {
			return 0.9
		}
		return 0.02 * load
	}
	if load < 0.99 {
		load = min(1, load*(1+w.scenario.Slack))
	}
	return w.scenario.Measured * load
}

// available is what the i-th of n consuming replicas could work on.
func (w *System) available(i, n int) float64 {
	if w.scenario.Type != backlog.Failover {
		return w.active[i].queue.total
	}
	sum := 0.0
	for p := i; p < len(w.waiting); p += n {
		sum += w.waiting[p].total
	}
	return sum
}

// finish takes messages off what the i-th of n consuming replicas works on, of which a share throws.
func (w *System) finish(i, n int, count, throws float64) {
	if count <= 0 {
		return
	}
	if w.scenario.Type != backlog.Failover {
		w.attempt(&w.active[i].queue, count, throws)
		return
	}
	sum := w.available(i, n)
	for p := i; p < len(w.waiting); p += n {
		w.attempt(&w.waiting[p], count*w.waiting[p].total/sum, throws)
	}
	w.delivered += count
}

// queues of all messages that can be processed, one day.
func (w *System) queues(look func(*fifo)) {
	for i := range w.waiting {
		look(&w.waiting[i])
	}
	for _, r := range w.replicas {
		look(&r.queue)
	}
	for i := range w.failed {
		look(&w.failed[i])
	}
	look(&w.again)
}

// queued messages wait for a replica or are with one.
func (w *System) queued() float64 {
	sum := 0.0
	w.queues(func(f *fifo) { sum += f.total })
	return sum
}

// oldest is when the oldest message that can be processed arrived.
func (w *System) oldest() (at int, ok bool) {
	at = w.second
	w.queues(func(f *fifo) {
		if first, some := f.oldest(); some {
			at, ok = min(at, first), true
		}
	})
	return at, ok
}
