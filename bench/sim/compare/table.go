// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

const (
	// columnGap is between the columns of tables.
	columnGap = 2
	// indent is that of the second line of a sentence.
	indent = "  "
)

// Text is the result for a terminal of a width.
func (r Result) Text(width int) string {
	var text strings.Builder
	line := func(sentence string) { text.WriteString(output.Wrap(sentence, "", indent, width) + "\n") }
	f := r.Function
	output.Printf(&text, "%s\n%s\n", r.Load.text(width), f.text(width))
	output.Printf(&text, "Objective: %s, %d to %d replicas\n\n", time.Duration(f.ObjectiveSeconds*float64(time.Second)),
		f.MinReplicas, f.MaxReplicas)
	text.WriteString(output.Columns(r.rows(), columnGap, width) + "\n")
	line(r.verdict())
	for _, better := range r.Better {
		line("- " + better)
	}
	if check := r.Check.text(); check != "" {
		line(check)
	}
	for _, note := range r.Notes {
		line("Note: " + note)
	}
	return text.String()
}

// text is the load in lines of a width.
func (l Load) text(width int) string { return facts("Load:", l.String(), width) }

// text is what is assumed of a replica.
func (f Function) text(width int) string {
	return facts("Replica:", fmt.Sprintf("%s messages/s (%s), starts in %s s (%s)", f.MessagesPerSecond.text("%.4g"),
		f.MessagesPerSecond.Source, f.StartSeconds.text("%.3g"), f.StartSeconds.Source), width)
}

// facts are a text beside its label.
func facts(label, text string, width int) string {
	const beside = len("Objective: ")
	return output.Wrap(text, fmt.Sprintf("%-*s", beside, label), strings.Repeat(" ", beside), width)
}

// text describes how well the model fits; empty without a check.
func (c *Check) text() string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("Check of the model: with the recorded replicas, messages were late for %s of the time in the "+
		"recording, and for %s in the simulation.", percent(c.Recorded), c.Model.times(100).text("%.2f%%"))
}

// String is the load in a line.
func (l Load) String() string {
	text := fmt.Sprintf("%s, %s, %s messages, peak %.4g/s", l.Source, time.Duration(l.Seconds)*time.Second,
		grouped(l.Messages), l.PeakMessagesPerSecond)
	if l.Start != nil {
		text += ", from " + l.Start.UTC().Format(time.RFC3339)
	}
	return text
}

func (r Result) verdict() string {
	if len(r.Better) == 0 {
		return "No contender beats the policy in late messages, or in replica-hours with as few late messages."
	}
	return "Better than the policy:"
}

func (r Result) rows() [][]string {
	header := []string{"CONTENDER", "REPLICA-HOURS", "LATE", "CHANGES", "MAX"}
	hasCost := r.Contenders[0].Cost != nil
	if hasCost {
		header = append(header, "COST")
	}
	rows := [][]string{append(header, "BEATS POLICY IN", "SETTING")}
	for _, o := range r.Contenders {
		row := []string{
			o.Name, o.ReplicaHours.text("%.1f"), o.LateRatio.times(100).text("%.2f%%"), o.Changes.text("%.0f"),
			fmt.Sprint(o.MostReplicas),
		}
		if hasCost {
			row = append(row, o.Cost.text("%.2f"))
		}
		rows = append(rows, append(row, cmp.Or(o.BetterIn, "-"), o.Setting))
	}
	return rows
}

// text is the expected value, with its bounds if they are printed differently.
func (r Range) text(format string) string {
	low, expected, high := fmt.Sprintf(format, r.Low), fmt.Sprintf(format, r.Expected), fmt.Sprintf(format, r.High)
	if low == high {
		return expected
	}
	return expected + " (" + low + " to " + high + ")"
}

// grouped is a number with commas between thousands.
func grouped(value float64) string {
	digits := fmt.Sprintf("%.0f", value)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
