// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// mostLate are the late rows with their reasons.
const mostLate = 10

// column is a number of each row. Optional ones are left out where no row has a value.
type column struct {
	title, csv string
	optional   bool
	value      func(Row) *float64
	text       func(float64) string
}

func columns() []column {
	decimals := func(n int, unit string) func(float64) string {
		return func(value float64) string { return strconv.FormatFloat(value, 'f', n, 64) + unit }
	}
	minutes := func(value float64) string { return length(value * minute) }
	return []column{
		{"MET", "objective_met_percent", false, func(r Row) *float64 { return r.ObjectiveMetPercent }, decimals(2, "%")},
		{"LATE", "late_minutes", false, func(r Row) *float64 { return r.LateMinutes }, minutes},
		{"REPLICA-H", "replica_hours", false, func(r Row) *float64 { return r.ReplicaHours }, decimals(1, "")},
		{"SAVED", "saved_replica_hours", false, func(r Row) *float64 { return r.SavedReplicaHours }, decimals(1, "")},
		{"SAVED%", "saved_percent", false, func(r Row) *float64 { return r.SavedPercent }, decimals(0, "%")},
		{
			"SINCE", "saved_replica_hours_since_recommend", true, func(r Row) *float64 { return r.SavedSinceRecommend },
			decimals(1, ""),
		},
		{"COST", "cost", true, func(r Row) *float64 { return r.Cost }, decimals(2, "")},
		{"SAVED COST", "saved_cost", true, func(r Row) *float64 { return r.SavedCost }, decimals(2, "")},
		{
			"NO DATA", "no_data_hours", false, func(r Row) *float64 { return &r.NoDataHours },
			func(value float64) string { return length(value * hour) },
		},
	}
}

// columns that the report has.
func (r Report) columns() []column {
	return slices.DeleteFunc(columns(), func(c column) bool {
		return c.optional && !slices.ContainsFunc(r.Rows, func(row Row) bool { return c.value(row) != nil })
	})
}

// cells are the table with its header, and the total as its last row.
func (r Report) cells() [][]string {
	header := []string{"POLICY"}
	if r.GroupedBy != "" {
		header = []string{strings.ToUpper(r.GroupedBy)}
	}
	shown := r.columns()
	for _, c := range shown {
		header = append(header, c.title)
	}
	rows := [][]string{header}
	for _, row := range append(slices.Clone(r.Rows), r.Total) {
		cells := []string{row.Name}
		for _, c := range shown {
			cell := output.Unknown
			if value := c.value(row); value != nil {
				cell = c.text(*value)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	return rows
}

// Verdict is the report in a sentence.
func (r Report) Verdict() string {
	text := "It is unknown whether messages met their latency objectives"
	if met := r.Total.ObjectiveMetPercent; met != nil {
		text = fmt.Sprintf("Latency objectives were met %.2f%% of the time", *met)
	}
	if saved := r.Total.SavedPercent; saved != nil {
		text += fmt.Sprintf(", with %.0f%% fewer replica-hours than at each day's peak", *saved)
	}
	return text
}

// period is the time of the report, and how many policies it is about.
func (r Report) period() string {
	return fmt.Sprintf("%d policies, %s to %s (%s)", r.Total.Policies, r.From.UTC().Format(time.RFC3339),
		r.To.UTC().Format(time.RFC3339), length(r.To.Sub(r.From).Seconds()))
}

// late are the rows with the most late time, each with its reasons.
func (r Report) late() [][]string {
	var rows [][]string
	for _, row := range r.Rows[:min(len(r.Rows), mostLate)] {
		if row.late() <= 0 {
			break
		}
		var reasons []string
		for _, reason := range row.LateReasons {
			reasons = append(reasons, cmp.Or(reason.Reason, "unknown")+" "+length(reason.Minutes*minute))
		}
		text := cmp.Or(strings.Join(reasons, ", "), "the reason is unknown")
		rows = append(rows, []string{row.Name, length(row.late() * minute), text})
	}
	return rows
}

// notes are what the table does not say.
func (r Report) notes() []string {
	var notes []string
	if hours := r.Total.NoDataHours; hours > 0 {
		notes = append(notes, fmt.Sprintf("No data for %s of %s: that time counts neither as met nor as late, and has no "+
			"replica-hours.", length(hours*hour), length(r.To.Sub(r.From).Seconds()*float64(r.Total.Policies))))
	}
	for _, row := range r.Rows {
		if row.Recommend == nil {
			continue
		}
		met := "unknown whether the objective was met"
		if share := row.Recommend.ObjectiveMetPercent; share != nil {
			met = fmt.Sprintf("objective met %.2f%%", *share)
		}
		notes = append(notes, fmt.Sprintf("%s: %s in mode Recommend or Paused, which the table leaves out: %s, %.1f "+
			"replicas on average.", row.Name, length(row.Recommend.Hours*hour), met, row.Recommend.MeanReplicas))
	}
	return notes
}

// Text is the report for a terminal of a width.
func (r Report) Text(width int) string {
	const gap = 2
	var text strings.Builder
	line := func(sentence string) { text.WriteString(output.Wrap(sentence, "", "  ", width) + "\n") }
	line(r.period())
	line(r.Verdict() + ".")
	text.WriteString("\n" + output.Columns(r.cells(), gap, width))
	for i, row := range r.late() {
		if i == 0 {
			text.WriteString("\nMost late time, and why:\n")
		}
		line(row[0] + " " + row[1] + ": " + row[2])
	}
	for i, note := range r.notes() {
		if i == 0 {
			text.WriteByte('\n')
		}
		line(note)
	}
	return text.String()
}

// WriteCSV writes a row for each row of the report, without the total. An unknown number is an empty cell.
func (r Report) WriteCSV(to io.Writer) error {
	table := csv.NewWriter(to)
	header := []string{"from", "to", "name", "policies"}
	for _, c := range columns() {
		header = append(header, c.csv)
	}
	rows := [][]string{header}
	for _, row := range r.Rows {
		cells := []string{
			r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339), row.Name, strconv.Itoa(row.Policies),
		}
		for _, c := range columns() {
			cell := ""
			if value := c.value(row); value != nil {
				cell = strconv.FormatFloat(*value, 'f', -1, 64)
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	if err := table.WriteAll(rows); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// length of a time, such as 720h, 2h10m or 45s. A sum over many policies is longer than any time.Duration.
func length(seconds float64) string {
	if seconds = math.Round(seconds); seconds < hour {
		text := (time.Duration(seconds) * time.Second).String()
		if strings.HasSuffix(text, "m0s") {
			text = strings.TrimSuffix(text, "0s")
		}
		return text
	}
	minutes := int64(math.Round(seconds / minute))
	text := fmt.Sprintf("%dh", minutes/60)
	if rest := minutes % 60; rest > 0 {
		text += fmt.Sprintf("%dm", rest)
	}
	return text
}
