// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "reflect"

// decision is what the policy's status said from a second on.
type decision struct {
	Second   int    `json:"second"`
	Desired  *int32 `json:"desired"`
	Equation string `json:"equation"`
	Hold     string `json:"hold"`
	// Capacity of a replica in messages per second as it was learned, and BusyPct what a busy one was seen to say.
	Capacity string `json:"capacity"`
	BusyPct  *int32 `json:"busy_pct"`
}

// decisions are those that differ from the one before.
func decisions(looks []look) []decision {
	var all []decision
	for _, l := range looks {
		if l.policy == nil {
			continue
		}
		status := l.policy.Status
		d := decision{Second: int(l.at.Seconds()), Desired: status.DesiredReplicas}
		if made := status.Decision; made != nil {
			d.Equation = made.Equation
			if made.Hold != nil {
				d.Hold = made.Hold.Reason
			}
		}
		if c := status.Capacity; c != nil {
			d.Capacity, d.BusyPct = c.MessagesPerSecond.String(), c.MeasuredBusyPercent
		}
		if len(all) == 0 || !d.says(all[len(all)-1]) {
			all = append(all, d)
		}
	}
	return all
}

// says tells whether two decisions are the same but for their time.
func (d decision) says(other decision) bool {
	d.Second = other.Second
	return reflect.DeepEqual(d, other)
}
