// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// ResultKind is the kind of a Result.
const ResultKind = "Result"

// pulsarsQueue is receiverQueueSize where it is not set.
const pulsarsQueue = 1000

// Result is what a run measured. Its JSON follows docs/bench.schema.json.
type Result struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Scenario is the name of the scenario, and Run identifies this run.
	Scenario string    `json:"scenario"`
	Run      string    `json:"run"`
	Begun    time.Time `json:"begun"`
	// Differs are the flags that differ from their shipped defaults, which are unknown on the user's own cluster, and the
	// receiver queue, if it is not Pulsar's.
	Differs []string `json:"differs,omitempty"`
	// LatencyObjectiveSeconds, LoadSeconds and WatchSeconds are those of the scenario.
	LatencyObjectiveSeconds float64     `json:"latencyObjectiveSeconds"`
	LoadSeconds             float64     `json:"loadSeconds"`
	WatchSeconds            float64     `json:"watchSeconds"`
	Contenders              []Contender `json:"contenders"`
	Verdict                 Verdict     `json:"verdict"`
}

// Contender is what was measured of a contender.
type Contender struct {
	Name    string    `json:"name"`
	Setting string    `json:"setting"`
	Begun   time.Time `json:"begun"`
	// LatencyFrom is the origin of latencies.
	LatencyFrom LatencySource `json:"latencyFrom"`
	// Messages are counts and latencies, and Usage is of replicas.
	Messages load.Result `json:"messages"`
	Usage    Usage       `json:"usage"`
	Samples  []Sample    `json:"samples"`
	// Redelivered messages were delivered again; nil if that is unknown.
	Redelivered *int64 `json:"redelivered,omitempty"`
	// Stalled is why the figures say nothing of the contender: its ready replicas processed nothing. Empty if they did.
	Stalled string `json:"stalled,omitempty"`
}

func newResult(s scenario.Scenario, schedule load.Schedule, id string) Result {
	var differs []string
	if size := s.Function.ReceiverQueueSize; size > 0 && size != pulsarsQueue {
		differs = append(differs,
			fmt.Sprintf("receiverQueueSize=%d of the Function, where Pulsar has %d", size, pulsarsQueue))
	}
	return Result{
		APIVersion: scenario.APIVersion, Kind: ResultKind, Scenario: s.Metadata.Name, Run: id,
		LatencyObjectiveSeconds: s.Objective().Seconds(), LoadSeconds: schedule.End().Seconds(),
		WatchSeconds: s.WatchAfter.Seconds(), Differs: differs,
	}
}

// row is a figure of each contender.
type row struct {
	title string
	cell  func(c Contender) string
}

func rows() []row {
	return []row{
		{"late messages, %", func(c Contender) string { return percent(c.Messages.LateRatio) }},
		{"latency p50, s", func(c Contender) string { return latency(c.Messages.Latencies.P50) }},
		{"latency p99, s", func(c Contender) string { return latency(c.Messages.Latencies.P99) }},
		{"latency max, s", func(c Contender) string { return latency(c.Messages.Latencies.Max) }},
		{"wakes from zero, s", func(c Contender) string { return wakesText(c.Usage.WakeSeconds) }},
		{"replica-hours", func(c Contender) string { return decimals(c.Usage.ReplicaHours, 3) }},
		{"scale changes", func(c Contender) string { return strconv.Itoa(c.Usage.ScaleChanges) }},
		{"most replicas", func(c Contender) string { return strconv.Itoa(c.Usage.MostReplicas) }},
		{"replicas removed", func(c Contender) string { return strconv.Itoa(c.Usage.RemovedReplicas) }},
		{"messages redelivered", func(c Contender) string { return output.Whole(c.Redelivered) }},
		{"messages scheduled", func(c Contender) string { return whole(c.Messages.Due) }},
		{"messages processed", func(c Contender) string { return whole(c.Messages.Done) }},
		{"messages without a result", func(c Contender) string { return whole(c.Messages.Missing) }},
		{"duplicate results", func(c Contender) string { return output.Whole(c.Messages.Duplicates) }},
		{"publisher lag p99, s", func(c Contender) string { return decimals(c.Messages.Lag.Late.P99.Seconds(), 3) }},
	}
}

func decimals(value float64, places int) string { return strconv.FormatFloat(value, 'f', places, 64) }
func percent(ratio float64) string              { return decimals(100*ratio, 2) }
func whole(value int64) string                  { return strconv.FormatInt(value, 10) }

// latency is unknown if no message was processed, or if it was not recorded.
func latency(value time.Duration) string {
	if value == 0 {
		return output.Unknown
	}
	return decimals(value.Seconds(), 3)
}

// wakesText lists all wakes: they depend on when an autoscaler polls, so they vary.
func wakesText(seconds []float64) string {
	var texts []string
	for _, one := range seconds {
		texts = append(texts, decimals(one, 0))
	}
	return cmp.Or(strings.Join(texts, ", "), output.Unknown)
}

// cells are the figures of all contenders, below a header with their names.
func (r Result) cells() [][]string {
	head := []string{""}
	for _, c := range r.Contenders {
		head = append(head, c.Name)
	}
	cells := [][]string{head}
	for _, line := range rows() {
		one := []string{line.title}
		for _, c := range r.Contenders {
			one = append(one, line.cell(c))
		}
		cells = append(cells, one)
	}
	return cells
}

// Text is the result for a terminal of a width.
func (r Result) Text(width int) string {
	const gap = 2 // also before the first column
	var text strings.Builder
	line := func(sentence, first, next string) { text.WriteString(output.Wrap(sentence, first, next, width) + "\n") }
	line(r.summary(), "", "  ")
	for _, block := range output.Blocks(r.cells(), gap, width-gap) {
		_ = output.Table(&text, "", block) // a strings.Builder does not fail
	}
	for _, c := range r.Contenders {
		line(c.Name+": "+c.Setting, "", "  ")
	}
	for _, note := range r.notes() {
		line(note, "", "  ")
	}
	text.WriteByte('\n')
	for _, check := range r.Verdict.Checks {
		met := "MISSED  "
		if check.Met {
			met = "met     "
		}
		line(fmt.Sprintf("%s of %s: %s, limit %s", check.Name, r.Contenders[0].Name, check.Measured, check.Limit), met,
			strings.Repeat(" ", len(met)))
	}
	line("Verdict: "+r.Verdict.Text(), "", "  ")
	return text.String()
}

func (r Result) summary() string {
	return fmt.Sprintf("Scenario %s, run %s: %g s of load, watched for %.0f s more, objective %g s", r.Scenario, r.Run,
		r.LoadSeconds, r.WatchSeconds, r.LatencyObjectiveSeconds)
}

// isEstimated reports whether latencies are not from results.
func isEstimated(c Contender) bool { return c.LatencyFrom == PolicyWait }

// notes explain how to read the figures.
func (r Result) notes() []string {
	var notes []string
	switch {
	case r.Contenders[0].LatencyFrom == Processing:
		notes = append(notes, "Latency counts from the publication of a message until its processing ended.")
	case !slices.ContainsFunc(r.Contenders, isEstimated):
		notes = append(notes, "Latency counts from the scheduled time of a message, even if it was published late, "+
			"until its result was published. Late messages took longer than the objective, or had no result when the watch "+
			"ended.")
	}
	for _, flag := range r.Differs {
		notes = append(notes, "Differs from the default: "+flag)
	}
	for _, c := range r.Contenders {
		if isEstimated(c) {
			notes = append(notes, c.Name+": no results were read, so latency is the wait in the status of the policy when a "+
				"message was published, without the time to process it. A changing wait is written at most once a minute. "+
				"Messages processed are those with a known wait; the others count as late.")
		}
		if c.Messages.Skew > 0 {
			notes = append(notes, fmt.Sprintf("%s: clocks differ by at least %s, so latencies may be wrong by as much.", c.Name,
				c.Messages.Skew))
		}
	}
	return notes
}
