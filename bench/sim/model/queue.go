// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// cohort is messages that arrived in the same second.
type cohort struct {
	at    int
	count float64
}

// queue is messages in the order of their arrival.
type queue struct {
	cohorts []cohort
	head    int
	total   float64
}

// dust is less than any message: the rounding error of a cohort that is used up.
const dust = 1e-9

func (q *queue) push(at int, count float64) {
	if count <= dust {
		return
	}
	q.total += count
	if last := len(q.cohorts) - 1; last >= q.head && q.cohorts[last].at == at {
		q.cohorts[last].count += count
		return
	}
	q.cohorts = append(q.cohorts, cohort{at, count})
}

// pop takes up to count messages from the head, oldest first, and passes on each cohort.
func (q *queue) pop(count float64, take func(cohort)) {
	count = min(count, q.total)
	for count > dust && q.head < len(q.cohorts) {
		first := &q.cohorts[q.head]
		taken := min(first.count, count)
		take(cohort{first.at, taken})
		count -= taken
		q.total -= taken
		if first.count -= taken; first.count <= dust {
			q.total -= first.count
			q.head++
		}
	}
	q.compact()
}

// putBack returns messages to the head: they were taken before all remaining ones.
func (q *queue) putBack(back *queue) {
	returned := back.cohorts[back.head:]
	if len(returned) == 0 {
		return
	}
	merged := make([]cohort, 0, len(returned)+len(q.cohorts)-q.head)
	rest := q.cohorts[q.head:]
	for len(returned) > 0 && len(rest) > 0 {
		switch {
		case returned[0].at < rest[0].at:
			merged, returned = append(merged, returned[0]), returned[1:]
		case returned[0].at == rest[0].at:
			merged = append(merged, cohort{returned[0].at, returned[0].count + rest[0].count})
			returned, rest = returned[1:], rest[1:]
		default:
			merged, rest = append(merged, rest[0]), rest[1:]
		}
	}
	merged = append(append(merged, returned...), rest...)
	q.total += back.total
	q.cohorts, q.head = merged, 0
	*back = queue{}
}

// split takes a part of each cohort that arrived in a second or later: the rest and the result are both in order.
func (q *queue) split(part float64, since int) queue {
	var taken queue
	for i := q.head; i < len(q.cohorts); i++ {
		p := &q.cohorts[i]
		if p.at < since || p.count*part <= dust {
			continue
		}
		count := p.count * part
		p.count -= count
		q.total -= count
		taken.push(p.at, count)
	}
	return taken
}

// oldest is when the first message arrived; false without any.
func (q *queue) oldest() (at int, ok bool) {
	if q.head >= len(q.cohorts) || q.total <= dust {
		return 0, false
	}
	return q.cohorts[q.head].at, true
}

// compact moves the rest to the front once most of the array is used up.
func (q *queue) compact() {
	if q.head == len(q.cohorts) {
		q.cohorts, q.head, q.total = q.cohorts[:0], 0, 0
		return
	}
	if q.head > 64 && q.head > len(q.cohorts)/2 {
		q.cohorts, q.head = q.cohorts[:copy(q.cohorts, q.cohorts[q.head:])], 0
	}
}
