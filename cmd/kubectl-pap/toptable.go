// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"io"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// unknown is the cell of an unknown value.
const unknown = output.Unknown

const (
	// minName is how far names are cut, before reasons are.
	minName = 16
	// columnGap is the space between columns.
	columnGap = 2
)

// topTable is the form of the list.
type topTable struct {
	// namespaces is true if names are shown with their namespace.
	namespaces, wide bool
	// trend returns the cell of column TREND; nil without that column.
	trend func(topRow) string
}

// text is the list, in lines of at most width columns; of any width with 0.
func (t topTable) text(rows []topRow, width int, now time.Time) string {
	cells := [][]string{t.header()}
	for _, row := range rows {
		cells = append(cells, t.cells(row, now))
	}
	if width > 0 && !t.wide {
		cells = cut(cells, width)
	}
	return output.Columns(cells, columnGap, 0)
}

func (t topTable) header() []string {
	header := []string{"NAME", "WAIT/OBJ"}
	if t.trend != nil {
		header = append(header, "TREND")
	}
	header = append(header, "BACKLOG", "IN/S", "OUT/S", "REPLICAS")
	if t.wide {
		header = append(header, "MET", "MODE", "TARGET", "ACTUATOR", "CAPACITY", "HOLD", "LIMITED BY", "MEASURED")
	}
	return append(header, "WHY")
}

func (t topTable) cells(r topRow, now time.Time) []string {
	name := r.Name
	if t.namespaces {
		name = r.Namespace + "/" + name
	}
	count := func(replicas int32) string { return strconv.Itoa(int(replicas)) }
	cells := []string{name, cell(r.WaitSeconds, short) + "/" + short(r.LatencyObjectiveSeconds)}
	if t.trend != nil {
		cells = append(cells, t.trend(r))
	}
	cells = append(cells, cell(r.ReadyMessages, func(messages int64) string { return compact(float64(messages)) }),
		cell(r.PublishedMessagesPerSecond, compact), cell(r.ProcessedMessagesPerSecond, compact),
		cell(r.DesiredReplicas, count)+"/"+cell(r.SpecReplicas, count)+"/"+cell(r.RunningReplicas, count))
	if t.wide {
		cells = append(cells, string(r.ObjectiveMet), string(r.Mode), cmp.Or(r.Target, unknown),
			cmp.Or(string(r.Actuator), unknown), cell(r.MessagesPerSecondPerReplica, compact), cmp.Or(r.Hold, unknown),
			cmp.Or(r.LimitedBy, unknown), cell(r.MeasuredAt, func(at metav1.Time) string { return ago(at.Time, now) }))
	}
	return append(cells, r.Why)
}

// cut cuts the first column, and then the last, so that lines have at most width columns.
func cut(rows [][]string, width int) [][]string {
	widths := make([]int, len(rows[0]))
	over := (len(widths)-1)*columnGap - width
	for column := range widths {
		for _, row := range rows {
			widths[column] = max(widths[column], utf8.RuneCountInString(row[column]))
		}
		over += widths[column]
	}
	last := len(widths) - 1
	name := min(widths[0], max(minName, widths[0]-max(0, over)))
	reason := max(1, widths[last]-max(0, over-(widths[0]-name)))
	for _, row := range rows {
		row[0], row[last] = shortened(row[0], name), shortened(row[last], reason)
	}
	return rows
}

// shortened is a text of at most length characters.
func shortened(text string, length int) string {
	runes := []rune(text)
	if len(runes) <= length {
		return text
	}
	return string(runes[:length-1]) + "…"
}

// short has tenths of a second below 10 s, as the status has.
func short(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	if d < 10*time.Second {
		return strconv.FormatFloat(d.Round(time.Second/10).Seconds(), 'f', -1, 64) + "s"
	}
	return duration.HumanDuration(d)
}

// ago is the age of something.
func ago(at, now time.Time) string { return duration.HumanDuration(max(0, now.Sub(at))) }

// cell is that of a value, which may be unknown.
func cell[T any](value *T, text func(T) string) string {
	if value == nil {
		return unknown
	}
	return text(*value)
}

// compact has three digits from 10,000 on, such as 15.1k.
func compact(value float64) string {
	const exact, thousand = 10_000, 1000
	suffix := ""
	if value >= exact {
		for _, next := range []string{"k", "M", "G", "T"} {
			if value < thousand {
				break
			}
			value, suffix = value/thousand, next
		}
	}
	return v1alpha1.NewRate(value).String() + suffix
}

// textWidth is the number of columns for people.
func textWidth(out io.Writer) int {
	if width, _ := terminalSize(out); width > 0 {
		return max(minWidth, width)
	}
	return defaultWidth
}

// terminalSize is 0, 0 if the output is no terminal.
func terminalSize(out io.Writer) (width, height int) {
	file, isFile := out.(*os.File)
	if !isFile {
		return 0, 0
	}
	width, height, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, 0
	}
	return width, height
}
