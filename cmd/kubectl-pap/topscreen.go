// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

const (
	// redrawAfter is the minimum time between two drawings, so that many changes are one.
	redrawAfter = time.Second / 2
	// redrawAtLeast renews the ages while nothing changes.
	redrawAtLeast = 10 * time.Second
	// failedFor is how long a failure of the watch is shown, unless it fails again or something changes: a failed watch is
	// tried again after up to a minute, and its success alone is not reported.
	failedFor = 2 * time.Minute
	// trendLength is how many waits a trend has.
	trendLength = 8
)

// screen is the list of kubectl pap top --watch.
type screen struct {
	out    io.Writer
	table  topTable
	trends map[client.ObjectKey]trend
	// failed is the last failure of the watch, at failedAt; nil since the last change.
	failed   error
	failedAt time.Time
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
		s.failedAt = time.Now()
	case <-time.After(redrawAtLeast):
		if time.Since(s.failedAt) > failedFor {
			s.failed = nil
		}
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
	shown := len(rows)
	if height > 0 {
		shown = min(shown, max(1, height-besides))
	}
	table := s.table
	table.trend = func(r topRow) string { return string(s.trends[r.key()].waits) }
	text := now.Format(time.TimeOnly) + "  " + title + "\n" + table.text(rows[:shown], width, now)
	if shown < len(rows) {
		text += fmt.Sprintf("and %d more\n", len(rows)-shown)
	}
	if width == 0 {
		return text
	}
	lines := strings.Split(text, "\n") // a wide row is longer than most terminals, which would wrap it
	for i, line := range lines {
		lines[i] = shortened(line, width)
	}
	return strings.Join(lines, "\n")
}

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

type watched struct {
	selection
	cache    cache.Cache
	informer cache.Informer
	// first are the policies until the informer has them.
	first []v1alpha1.AutoscalingPolicy
	// changed and failures have the next change, and the next failure of the watch.
	changed  chan struct{}
	failures chan error
}

// watch prepares an informer of the policies. The client knows the kind.
func (s selection) watch(ctx context.Context, config *rest.Config, kube client.Client) (*watched, error) {
	w := &watched{selection: s, changed: make(chan struct{}, 1), failures: make(chan error, 1)}
	options := cache.Options{
		Scheme: kube.Scheme(), Mapper: kube.RESTMapper(), DefaultLabelSelector: s.labels,
		DefaultTransform: cache.TransformStripManagedFields(),
		DefaultWatchErrorHandler: func(_ context.Context, _ *toolscache.Reflector, err error) {
			select {
			case w.failures <- err:
			default: // an earlier one is not shown yet
			}
		},
	}
	if s.namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{s.namespace: {}}
	}
	var err error
	if w.cache, err = cache.New(config, options); err != nil {
		return nil, fmt.Errorf("preparing to watch the policies: %w", err)
	}
	notify := func(types.NamespacedName, client.Object) {
		select {
		case w.changed <- struct{}{}:
		default: // the next drawing has this change too
		}
	}
	w.informer, err = cluster.Follow(ctx, w.cache, &v1alpha1.AutoscalingPolicy{}, notify)
	if err != nil {
		return nil, fmt.Errorf("preparing to watch the policies: %w", err)
	}
	return w, nil
}

// policies are those that the informer has.
func (w *watched) policies(ctx context.Context) ([]v1alpha1.AutoscalingPolicy, error) {
	if !w.informer.HasSynced() {
		return w.first, nil
	}
	return w.list(ctx, w.cache)
}

// draw draws the policies at each change until the context ends.
func (w *watched) draw(ctx context.Context, s *screen) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.cache.Start(ctx) })
	group.Go(func() error { return s.redraw(ctx, w.changed, w.failures, w.policies) })
	return group.Wait()
}

const unknown = output.Unknown

const (
	// minName is how far names are cut, before reasons are.
	minName = 16
	// columnGap is the space between columns.
	columnGap = 2
)

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
