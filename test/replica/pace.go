// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import "time"

const (
	// waited: a message received this soon after the request for it was already in the queue.
	waited = 500 * time.Microsecond
	// debtMax bounds how much lost time a replica makes up for after the machine stalled it.
	debtMax = 50 * time.Millisecond
)

// pacer makes a saturated replica process exactly 1/service messages per second: a sleep ends up to 1 ms late, which at
// 1 ms per message would halve the rate. One goroutine uses it.
type pacer struct {
	free time.Time // when the previous message was due
}

// due returns when a message is done that was requested at asked, arrived at received and costs service.
func (p *pacer) due(asked, received time.Time, service time.Duration) time.Time {
	begin := received
	if received.Sub(asked) < waited && p.free.Before(received) {
		begin = p.free
		if oldest := received.Add(-debtMax); begin.Before(oldest) {
			begin = oldest
		}
	}
	if p.free.After(begin) {
		begin = p.free
	}
	p.free = begin.Add(service)
	return p.free
}
