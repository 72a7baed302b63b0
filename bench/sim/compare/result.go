// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Result is the result of a comparison. Ranges are over the inexact inputs.
type Result struct {
	Load       Load      `json:"load"`
	Function   Function  `json:"function"`
	Contenders []Outcome `json:"contenders"`
	// Better are the contenders that beat the policy in something, with what it is.
	Better []string `json:"better"`
	// Check compares the model with the recording; null if the trace lacks the data.
	Check *Check `json:"check"`
	// Notes are caveats about the data.
	Notes []string `json:"notes,omitempty"`

	// rate of arrivals by second.
	rate func(second float64) float64
}

// Load is the replayed load.
type Load struct {
	Source string `json:"source"`
	// Start is null if the trace has no dates.
	Start                 *time.Time `json:"start"`
	Seconds               int        `json:"seconds"`
	Messages              float64    `json:"messages"`
	PeakMessagesPerSecond float64    `json:"peakMessagesPerSecond"`
}

// Function has the assumptions about it.
type Function struct {
	MessagesPerSecond Estimate `json:"messagesPerSecondPerReplica"`
	StartSeconds      Estimate `json:"startSeconds"`
	ObjectiveSeconds  float64  `json:"latencyObjectiveSeconds"`
	MinReplicas       int      `json:"minReplicas"`
	MaxReplicas       int      `json:"maxReplicas"`
}

// Check is the share of the time with late messages: as recorded, and in the model with the same replicas.
type Check struct {
	Recorded float64 `json:"recordedLateTimeRatio"`
	Model    Range   `json:"modelLateTimeRatio"`
}

// Outcome of one contender.
type Outcome struct {
	Name         string `json:"name"`
	Setting      string `json:"setting"`
	ReplicaHours Range  `json:"replicaHours"`
	// LateRatio is the share of the messages that were processed later than the objective, or have been waiting for
	// longer.
	LateRatio Range `json:"lateRatio"`
	Changes   Range `json:"changes"`
	// MostReplicas at one time, in the expected case.
	MostReplicas int `json:"mostReplicas"`
	// BetterIn is what it beats the policy in, "replica-hours" or "late"; absent for neither.
	BetterIn string `json:"betterIn,omitempty"`
	// Cost is null without a cost per replica and hour.
	Cost *Range `json:"cost"`

	// replicas, oldest and backlog are the expected case, second by second: replicas, the age of the oldest message, and
	// the messages that wait.
	replicas, oldest, backlog []int32
	// hours and late of each plan, to compare contenders plan by plan.
	hours, late []float64
}

const hour = 3600

// load and function are the inputs, for a report.
func (c Config) load() Load {
	load := Load{Source: c.Source, Seconds: c.Load.Seconds(), Messages: c.messages(), PeakMessagesPerSecond: c.peak()}
	if start, known := c.Load.Start(); known {
		load.Start = &start
	}
	return load
}

func (c Config) function() Function {
	return Function{
		MessagesPerSecond: c.Capacity, StartSeconds: c.Start, ObjectiveSeconds: c.objective().Seconds(),
		MinReplicas: c.least(), MaxReplicas: int(c.Spec.MaxReplicas),
	}
}

func (c Config) result(contenders []contender, scores [][]model.Score) Result {
	r := Result{rate: c.Load.Rate, Notes: c.Notes, Load: c.load(), Function: c.function()}
	for i, one := range contenders {
		r.Contenders = append(r.Contenders, c.outcome(one, scores[i]))
	}
	var in []string
	r.Better, in = r.better()
	for i := range r.Contenders {
		r.Contenders[i].BetterIn = in[i]
	}
	if last := len(contenders) - 1; contenders[last].name == Recorded && c.RecordedLate != nil {
		var late []float64
		for _, score := range scores[last] {
			late = append(late, float64(score.ViolationSeconds)/float64(c.Load.Seconds()))
		}
		r.Check = &Check{Recorded: *c.RecordedLate, Model: over(late)}
	}
	return r
}

func (c Config) outcome(one contender, scores []model.Score) Outcome {
	expected := scores[0]
	o := Outcome{
		Name: one.name, Setting: one.setting, replicas: expected.Trace, oldest: expected.Oldest, backlog: expected.Backlog,
	}
	var changes []float64
	for _, score := range scores {
		o.hours = append(o.hours, score.ReplicaSeconds/hour)
		o.late = append(o.late, score.LateShare())
		changes = append(changes, float64(score.Actions))
	}
	o.ReplicaHours, o.LateRatio, o.Changes = over(o.hours), over(o.late), over(changes)
	o.MostReplicas = int(slices.Max(append([]int32{0}, o.replicas...)))
	if price := c.CostPerReplicaHour; price != nil {
		o.Cost = new(o.ReplicaHours.times(*price))
	}
	return o
}

// over is the range of the values of all plans; the first is the expected one.
func over(values []float64) Range { return Range{slices.Min(values), values[0], slices.Max(values)} }

func (r Range) times(factor float64) Range {
	return Range{r.Low * factor, r.Expected * factor, r.High * factor}
}
