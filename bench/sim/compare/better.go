// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import "fmt"

const (
	// lessHours is the share of the replica-hours, and lessLate the share of the messages, from which on a difference is
	// told: two runs with other luck differ by less.
	lessHours = 0.01
	lessLate  = 0.0005
)

// better tells which contenders beat the policy, in what, and how sure that is.
func (r Result) better() []string {
	found := []string{}
	ours := r.Contenders[0]
	for _, other := range r.Contenders[1:] {
		cheaper := func(i int) bool { return other.hours[i] < ours.hours[i]*(1-lessHours) }
		later := func(i int) bool { return other.late[i] > ours.late[i]+lessLate }
		inTime := func(i int) bool { return other.late[i] < ours.late[i]-lessLate }
		switch {
		case cheaper(0) && !later(0):
			found = append(found, fmt.Sprintf("%s needs %.0f%% fewer replica-hours, with no more late messages%s", other.Name,
				100*(1-other.hours[0]/ours.hours[0]), sure(len(ours.hours), func(i int) bool { return cheaper(i) && !later(i) })))
		case inTime(0):
			found = append(found, fmt.Sprintf("%s has fewer late messages, %s instead of %s, with %+.0f%% replica-hours%s",
				other.Name, percent(other.late[0]), percent(ours.late[0]), 100*(other.hours[0]/ours.hours[0]-1),
				sure(len(ours.hours), inTime)))
		}
	}
	return found
}

// sure says whether what is expected also holds at the bounds.
func sure(plans int, holds func(plan int) bool) string {
	for i := range plans {
		if !holds(i) {
			return " (as expected; not within the whole range of what is known)"
		}
	}
	return ""
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }
