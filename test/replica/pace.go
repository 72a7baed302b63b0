// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import "time"

const (
	// waited: a message that came this soon after it was asked for had been waiting.
	waited = 500 * time.Microsecond
	// debtMax bounds what a replica makes up for after the machine stalled it.
	debtMax = 50 * time.Millisecond
)

// pacer makes a replica that always has messages process exactly 1/service of them per second: a sleep ends up to 1 ms
// late, which at 1 ms per message would halve the rate. It is used by one goroutine.
type pacer struct {
	free time.Time // when the message before was due to be done
}

// due returns when a message is done that was asked for at asked, arrived at received and costs service.
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
