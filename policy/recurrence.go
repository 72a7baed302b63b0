// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"
)

// Recurrence is a load that returned soon after its replicas had been removed. It lengthens the stabilization window to
// its period, since a sawtooth of a few minutes would change the replicas several times in each period.
type Recurrence struct {
	// At is when replicas were added again, and After the time since they were needed before.
	At    time.Time     `json:"at,omitzero"`
	After time.Duration `json:"after,omitempty"`
}

const (
	// longestRecurrence is the longest period to hold replicas for, and recurrenceWindows the same in stabilization
	// windows: between less frequent peaks, holding costs more than the changes.
	longestRecurrence, recurrenceWindows = 5 * time.Minute, 7
	// recurrenceMargin is the share of the period by which the window exceeds it.
	recurrenceMargin = 0.1
	// recurrenceForgotten is how long the window stays longer: the load shows no period meanwhile.
	recurrenceForgotten = 40 * time.Minute
)

// recurrence learns from a scale-up for a surge, using the recent recommendations. Replicas that were slower for a
// while also need more of them, but do not do so periodically.
func (s State) recurrence(in Input, recommended []ReplicasAt, from, to int32) Recurrence {
	r := s.Recurrence
	if to <= from || !s.Arrivals.surge() {
		return r
	}
	for i := len(recommended) - 1; i >= 0; i-- {
		last := recommended[i]
		if last.Replicas < to {
			continue
		}
		after := in.Now.Sub(last.At)
		if after >= recurrenceWindow(in) {
			return r
		}
		return Recurrence{At: in.Now, After: max(after, r.after(in))}
	}
	return r
}

// after is the period while it is remembered, 0 otherwise.
func (r Recurrence) after(in Input) time.Duration {
	if in.Now.Sub(r.At) >= recurrenceForgotten {
		return 0
	}
	return r.After
}

// window is the stabilization window, lengthened to the period of the load.
func (r Recurrence) window(in Input) time.Duration {
	after := r.after(in)
	return max(downWindow(in), min(recurrenceWindow(in), after+time.Duration(recurrenceMargin*float64(after))))
}

// recurrenceWindow is the longest window. A user's short window stays short, and one of 0 is never longer.
func recurrenceWindow(in Input) time.Duration {
	window := downWindow(in)
	if in.without(PartRecurrence) {
		return window
	}
	return max(window, min(longestRecurrence, recurrenceWindows*window))
}

// explain is the window in words.
func (r Recurrence) explain(in Input) string {
	window := r.window(in)
	if window <= downWindow(in) {
		return fmt.Sprintf("the stabilization window of %s", window)
	}
	return fmt.Sprintf("%s: the stabilization window is %s, but replicas were needed again %s after they were last",
		window.Truncate(time.Second), downWindow(in), r.After.Truncate(time.Second))
}
