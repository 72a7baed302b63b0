// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// parcel is messages that arrived in the same second.
type parcel struct {
	at    int
	count float64
}

// fifo is messages in the order of their arrival.
type fifo struct {
	parcels []parcel
	head    int
	total   float64
}

// dust is less than any message: what floating point leaves of a parcel that is used up.
const dust = 1e-9

func (f *fifo) push(at int, count float64) {
	if count <= dust {
		return
	}
	f.total += count
	if last := len(f.parcels) - 1; last >= f.head && f.parcels[last].at == at {
		f.parcels[last].count += count
		return
	}
	f.parcels = append(f.parcels, parcel{at, count})
}

// pop takes up to count messages from the head, oldest first, and hands each parcel over.
func (f *fifo) pop(count float64, take func(parcel)) {
	count = min(count, f.total)
	for count > dust && f.head < len(f.parcels) {
		first := &f.parcels[f.head]
		taken := min(first.count, count)
		take(parcel{first.at, taken})
		count -= taken
		f.total -= taken
		if first.count -= taken; first.count <= dust {
			f.total -= first.count
			f.head++
		}
	}
	f.compact()
}

// putBack returns messages to the head: they were taken before all that is left.
func (f *fifo) putBack(back *fifo) {
	returned := back.parcels[back.head:]
	if len(returned) == 0 {
		return
	}
	merged := make([]parcel, 0, len(returned)+len(f.parcels)-f.head)
	rest := f.parcels[f.head:]
	for len(returned) > 0 && len(rest) > 0 {
		switch {
		case returned[0].at < rest[0].at:
			merged, returned = append(merged, returned[0]), returned[1:]
		case returned[0].at == rest[0].at:
			merged = append(merged, parcel{returned[0].at, returned[0].count + rest[0].count})
			returned, rest = returned[1:], rest[1:]
		default:
			merged, rest = append(merged, rest[0]), rest[1:]
		}
	}
	merged = append(append(merged, returned...), rest...)
	f.total += back.total
	f.parcels, f.head = merged, 0
	*back = fifo{}
}

// split takes a part of each parcel that arrived in a second or later: what is left and what is returned are both in
// order.
func (f *fifo) split(part float64, since int) fifo {
	var taken fifo
	for i := f.head; i < len(f.parcels); i++ {
		p := &f.parcels[i]
		if p.at < since || p.count*part <= dust {
			continue
		}
		count := p.count * part
		p.count -= count
		f.total -= count
		taken.push(p.at, count)
	}
	return taken
}

// oldest is when the first message arrived; false when there is none.
func (f *fifo) oldest() (at int, ok bool) {
	if f.head >= len(f.parcels) || f.total <= dust {
		return 0, false
	}
	return f.parcels[f.head].at, true
}

// compact moves what is left to the front once most of the array is used up.
func (f *fifo) compact() {
	if f.head == len(f.parcels) {
		f.parcels, f.head, f.total = f.parcels[:0], 0, 0
		return
	}
	if f.head > 64 && f.head > len(f.parcels)/2 {
		f.parcels, f.head = f.parcels[:copy(f.parcels, f.parcels[f.head:])], 0
	}
}
