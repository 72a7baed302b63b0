// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "reflect"

// decision is the decision in the status of the policy from a second on.
type decision struct {
	Second   int    `json:"second"`
	Desired  *int32 `json:"desired"`
	Equation string `json:"equation"`
	Hold     string `json:"hold"`
	// Capacity of a replica in messages per second and BusyPct, the busy time of a saturated replica, are as learned.
	Capacity string `json:"capacity"`
	BusyPct  *int32 `json:"busy_pct"`
}

// decisions returns those that differ from the previous one.
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

// says reports whether two decisions are equal except for their time.
func (d decision) says(other decision) bool {
	d.Second = other.Second
	return reflect.DeepEqual(d, other)
}
