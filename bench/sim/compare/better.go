// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import "fmt"

const (
	// lessHours is the share of the replica-hours, and lessLate the share of the messages, above which a difference is
	// reported: runs with different seeds differ by less.
	lessHours = 0.01
	lessLate  = 0.0005
)

// assumption of each plan.
func assumption(plan int) string {
	return []string{
		"with the expected values, but not at both ends of the range",
		"only with the lowest capacity and the longest start", "only with the highest capacity and the shortest start",
	}[plan]
}

// better lists which contenders beat the policy, in what, and under which assumptions: as sentences, and in one word
// for each contender.
func (r Result) better() (found, in []string) {
	found, in = []string{}, make([]string, len(r.Contenders))
	ours := r.Contenders[0]
	for i, other := range r.Contenders {
		later := func(plan int) bool { return other.late[plan] > ours.late[plan]+lessLate }
		cheaper := func(plan int) bool {
			return other.hours[plan] < ours.hours[plan]*(1-lessHours) && !later(plan)
		}
		sooner := func(plan int) bool { return other.late[plan] < ours.late[plan]-lessLate }
		if plan, when, some := first(len(ours.hours), cheaper); some {
			in[i] = "replica-hours"
			found = append(found, fmt.Sprintf("%s needs %.0f%% fewer replica-hours, with no more late messages%s", other.Name,
				100*(1-other.hours[plan]/ours.hours[plan]), when))
		} else if plan, when, some := first(len(ours.hours), sooner); some {
			in[i] = "late"
			found = append(found, fmt.Sprintf("%s has fewer late messages, %s instead of %s, with %+.0f%% replica-hours%s",
				other.Name, percent(other.late[plan]), percent(ours.late[plan]),
				100*(other.hours[plan]/ours.hours[plan]-1), when))
		}
	}
	return found, in
}

// first returns the first plan that holds, and its assumption unless all hold.
func first(plans int, holds func(plan int) bool) (plan int, when string, some bool) {
	for plan = range plans {
		if holds(plan) {
			break
		}
	}
	if !holds(plan) {
		return 0, "", false
	}
	for other := range plans {
		if !holds(other) {
			return plan, " (" + assumption(plan) + ")", true
		}
	}
	return plan, "", true
}

func percent(share float64) string { return fmt.Sprintf("%.2f%%", 100*share) }
