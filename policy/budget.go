// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Budget counts the messages of the last objectiveWindow, and those of them that were late. It is empty without
// objectivePercent.
type Budget struct {
	// Since is when the newest of Counts began. Each is of a part of the window, the oldest first.
	Since  time.Time `json:"since"`
	Counts []Count   `json:"counts,omitempty"`
}

// Count of messages.
type Count struct {
	All  float64 `json:"all"`
	Late float64 `json:"late"`
}

// windowParts is the number of Counts of a window.
const windowParts = 12

// LateAllowed is the share of the messages that may miss the objective, from 0 to 1; 0 if all have to meet it.
func LateAllowed(spec v1alpha1.AutoscalingPolicySpec) float64 {
	if spec.ObjectivePercent == nil {
		return 0
	}
	return float64(percent-*spec.ObjectivePercent) / percent
}

// ObjectiveWindow is objectiveWindow of the spec, or its default where no API server has set it.
func ObjectiveWindow(spec v1alpha1.AutoscalingPolicySpec) time.Duration {
	if spec.ObjectiveWindow == nil || spec.ObjectiveWindow.Duration <= 0 {
		return defaultObjectiveWindow
	}
	return spec.ObjectiveWindow.Duration
}

// learn counts the messages since the last reading, once the decision is in the state. They are late if the next ones
// would be with the decided replicas, or if the oldest one is and is not stuck. They do not count while this is not
// known.
func (b Budget) learn(in Input, before, after State) Budget {
	if LateAllowed(in.Spec) == 0 {
		return Budget{}
	}
	if !in.Reading.At.After(before.ReadAt) {
		return b
	}
	b = b.at(in.Reading.At, ObjectiveWindow(in.Spec)/windowParts)
	elapsed := in.Reading.At.Sub(before.ReadAt)
	ready, err := in.Reading.Ready.Value()
	if err != nil || !latenessKnown(in) || elapsed > in.freshFor() || after.Arrivals == nil || after.Capacity == nil {
		return b
	}
	l := newLoad(in, after, ready)
	rate := l.arriving
	if processed, err := processRate(in.Reading); err == nil {
		rate = max(rate, processed)
	}
	newest := &b.Counts[len(b.Counts)-1]
	newest.All += rate * elapsed.Seconds()
	if l.aged || l.wait() > l.objective {
		newest.Late += rate * elapsed.Seconds()
	}
	return b
}

// at is a copy with Counts of the window that ends at a time.
func (b Budget) at(now time.Time, part time.Duration) Budget {
	if len(b.Counts) == 0 || now.Before(b.Since) || now.Sub(b.Since) >= windowParts*part {
		return Budget{Since: now, Counts: []Count{{}}}
	}
	counts := append(make([]Count, 0, windowParts+1), b.Counts...)
	for ; now.Sub(b.Since) >= part; b.Since = b.Since.Add(part) {
		counts = append(counts, Count{})
	}
	return Budget{Since: b.Since, Counts: counts[max(0, len(counts)-windowParts):]}
}

// latenessKnown reports whether a reading shows which messages are late. Attempts of failing messages and the age of
// delayed ones do not.
func latenessKnown(in Input) bool {
	_, aged := oldestDue(in.Reading)
	return aged && !failing(in) && in.Reading.Coverage.Complete() && contradiction(in) == ""
}

func (b Budget) late() backlog.Measurement {
	var sum Count
	for _, c := range b.Counts {
		sum.All, sum.Late = sum.All+c.All, sum.Late+c.Late
	}
	if sum.All == 0 {
		return backlog.Unknown(backlog.ErrNoData)
	}
	return backlog.Known(sum.Late / sum.All)
}

// left is the share of the budget that decisions may spend, from 0 to 1: none while lateness is unknown.
func (b Budget) left(in Input) float64 {
	burn, err := Decision{Late: b.late()}.BurnRate(in.Spec).Value()
	if err != nil || !latenessKnown(in) {
		return 0
	}
	return max(0, 1-burn)
}

// BurnRate is how fast the budget is spent: 1 spends all of it within objectiveWindow. It is unknown without a budget.
func (d Decision) BurnRate(spec v1alpha1.AutoscalingPolicySpec) backlog.Measurement {
	late, err := d.Late.Value()
	switch allowed := LateAllowed(spec); {
	case err != nil:
		return backlog.Unknown(err)
	case allowed == 0:
		return backlog.Unknown(backlog.ErrNotRequested)
	default:
		return backlog.Known(late / allowed)
	}
}
