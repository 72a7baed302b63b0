// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// throws is the share of the messages with which the function throws now.
func (w *System) throws() float64 {
	if w.scenario.Failing == nil {
		return 0
	}
	return w.scenario.Failing(float64(w.second))
}

// attempt works on messages of a queue, of which a share throws: those are acknowledged negatively, stay with their
// consumer for a minute and are sent again.
func (w *System) attempt(from *fifo, count, throws float64) {
	var failed fifo
	from.pop(count, func(p parcel) {
		w.score.finished(w.second-p.at, p.count*(1-throws), w.scenario.Objective)
		failed.push(p.at, p.count*throws)
	})
	w.failed[w.second%redelivery].putBack(&failed)
}

// tryAgain has the broker take back what failed a minute ago: it is sent before all that was never sent.
func (w *System) tryAgain() {
	if w.scenario.Failing != nil {
		w.again.putBack(&w.failed[w.second%redelivery])
	}
}

// retry has a replica work on messages that failed before. They need what is missing, so all of them fail until it is
// back.
func (w *System) retry(r *replica, count, throws float64) {
	if count <= 0 {
		return
	}
	if throws > 0 {
		throws = 1
	}
	before := w.again.total
	w.attempt(&w.again, count, throws)
	count = before - w.again.total
	r.received += count
	r.processed += count * (1 - throws)
	r.failed += count * throws
	w.delivered += count
}

// nacked messages failed less than a minute ago.
func (w *System) nacked() float64 {
	sum := 0.0
	for i := range w.failed {
		sum += w.failed[i].total
	}
	return sum
}
