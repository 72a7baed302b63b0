// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

const (
	// redrawAfter is the minimum time between two drawings, so that many changes are one.
	redrawAfter = time.Second / 2
	// redrawAtLeast renews the ages while nothing changes.
	redrawAtLeast = 10 * time.Second
	// trendLength is how many waits a trend has.
	trendLength = 8
)

// screen is the list of kubectl pap top --watch.
type screen struct {
	out    io.Writer
	table  topTable
	trends map[client.ObjectKey]trend
	// failed is the last failure of the watch; nil since the last change.
	failed error
}

// trend is the last measured waits of a policy.
type trend struct {
	measuredAt metav1.Time
	waits      []rune
}

// redraw draws the policies at each change, and at least every redrawAtLeast, until the context ends.
func (s *screen) redraw(ctx context.Context, changed <-chan struct{}, failures <-chan error,
	policies func(context.Context) ([]v1alpha1.AutoscalingPolicy, error),
) error {
	for {
		found, err := policies(ctx)
		if err == nil {
			err = s.draw(found, time.Now())
		}
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // the user ended it
		case err != nil:
			return err
		case !s.awaitChange(ctx, changed, failures):
			return nil
		}
	}
}

// awaitChange returns false if the context ended.
func (s *screen) awaitChange(ctx context.Context, changed <-chan struct{}, failures <-chan error) bool {
	select {
	case <-ctx.Done():
		return false
	case <-changed:
		s.failed = nil
	case s.failed = <-failures:
	case <-time.After(redrawAtLeast):
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(redrawAfter):
		return true
	}
}

// clearScreen moves the cursor to the upper left corner and clears what is below.
const clearScreen = "\x1b[H\x1b[J"

// draw replaces the screen of a terminal, and appends to any other output.
func (s *screen) draw(policies []v1alpha1.AutoscalingPolicy, now time.Time) error {
	rows := topRows(policies)
	s.remember(rows)
	width, height := terminalSize(s.out)
	text := s.text(rows, width, height, now)
	if width > 0 {
		text = clearScreen + text
	}
	_, err := io.WriteString(s.out, text)
	return err
}

// text has at most width columns and height lines; any number of them with 0.
func (s *screen) text(rows []topRow, width, height int, now time.Time) string {
	const besides = 4 // the title, the header, the number of hidden policies, and the line of the cursor
	title := summary(rows)
	if s.failed != nil {
		title = "the watch is repeated after an error: " + s.failed.Error()
	}
	title = now.Format(time.TimeOnly) + "  " + title
	if width > 0 {
		title = shortened(title, width)
	}
	shown := len(rows)
	if height > 0 {
		shown = min(shown, max(1, height-besides))
	}
	table := s.table
	table.trend = func(r topRow) string { return string(s.trends[r.key()].waits) }
	text := title + "\n" + table.text(rows[:shown], width, now)
	if shown < len(rows) {
		text += fmt.Sprintf("and %d more\n", len(rows)-shown)
	}
	return text
}

// summary counts the policies.
func summary(rows []topRow) string {
	var count [rankPaused + 1]int
	for _, row := range rows {
		count[row.rank()]++
	}
	return fmt.Sprintf("%d policies: %d late, %d unknown, %d in time, %d paused", len(rows),
		count[rankLate], count[rankUnknown], count[rankMet], count[rankPaused])
}

// remember adds the measured waits to the trends, and forgets deleted policies.
func (s *screen) remember(rows []topRow) {
	after := map[client.ObjectKey]trend{}
	for _, row := range rows {
		t := s.trends[row.key()]
		if row.MeasuredAt != nil && !row.MeasuredAt.Equal(&t.measuredAt) {
			t.measuredAt = *row.MeasuredAt
			t.waits = append(t.waits, bar(row))
			t.waits = t.waits[max(0, len(t.waits)-trendLength):]
		}
		after[row.key()] = t
	}
	s.trends = after
}

// bar is the wait relative to the objective: ▁ for none, █ for the objective or more, a space if it is unknown.
func bar(r topRow) rune {
	bars := []rune("▁▂▃▄▅▆▇█")
	if r.WaitPercent == nil {
		return ' '
	}
	last := len(bars) - 1
	return bars[min(last, int(*r.WaitPercent*float64(last)/100))]
}
