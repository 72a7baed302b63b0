// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package series

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
)

// page has a part for each program, between comments.
const page = "../../docs/metrics.md"

// Recorder is a registry that remembers what was registered.
type Recorder struct {
	*prometheus.Registry

	collectors []prometheus.Collector
}

// NewRecorder returns an empty one.
func NewRecorder() *Recorder { return &Recorder{Registry: prometheus.NewRegistry()} }

// Register implements prometheus.Registerer.
func (r *Recorder) Register(c prometheus.Collector) error {
	r.collectors = append(r.collectors, c)
	return r.Registry.Register(c)
}

// MustRegister implements prometheus.Registerer.
func (r *Recorder) MustRegister(all ...prometheus.Collector) {
	r.collectors = append(r.collectors, all...)
	r.Registry.MustRegister(all...)
}

// ComparePage compares the part of docs/metrics.md about a program with what the program registers and the series of
// its policies, or writes it.
func (r *Recorder) ComparePage(t testing.TB, program string, update bool, policies ...metrics.Series) {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	begin, end := "<!-- "+program+" -->\n", "<!-- end of "+program+" -->"
	before, rest, found := strings.Cut(string(content), begin)
	require.True(t, found, "%s has no %s", page, begin)
	was, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no %s", page, end)
	is := r.table(t, policies)
	if update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+is+end+after), 0o600))
		return
	}
	require.Equal(t, was, is, "if this change is wanted: make generate")
}

// table of all series, sorted by name.
func (r *Recorder) table(t testing.TB, policies []metrics.Series) string {
	t.Helper()
	rows := map[string]string{}
	for _, c := range r.collectors {
		for _, d := range describe(t, c) {
			rows[d.name] = d.row()
		}
	}
	for _, s := range policies {
		require.Empty(t, rows[s.Name], "%s is registered too", s.Name)
		kind, labels := "gauge", append([]string{"namespace", "policy"}, s.Labels...)
		if s.Counter {
			kind = "counter"
		}
		rows[s.Name] = description{s.Name, s.Help, kind, s.Unit, string(s.Level), s.Absent, labels}.row()
	}
	text := "| series | type | labels | unit | level | meaning | no sample |\n|---|---|---|---|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		text += rows[name]
	}
	return text
}

// description of one series.
type description struct {
	name, help, kind, unit, level, absent string
	labels                                []string
}

func (d description) row() string {
	cells := []string{
		"`" + d.name + "`", d.kind, strings.Join(d.labels, ", "), d.unit, d.level, strings.ReplaceAll(d.help, "|", `\|`),
		d.absent,
	}
	for i, cell := range cells {
		if cell == "" {
			cells[i] = "–"
		}
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

var descriptor = regexp.MustCompile(
	`^Desc\{fqName: (".*"), help: (".*"), unit: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// describe lists the series of a collector.
func describe(t testing.TB, c prometheus.Collector) []description {
	t.Helper()
	descs := make(chan *prometheus.Desc, 100)
	c.Describe(descs)
	close(descs)
	kinds := sampled(t, c)
	var all []description
	for desc := range descs {
		parts := descriptor.FindStringSubmatch(desc.String())
		require.Len(t, parts, 5, "%s", desc)
		d := description{kind: kinds[desc.String()], absent: "never"}
		var err error
		d.name, err = strconv.Unquote(parts[1])
		require.NoError(t, err)
		d.help, err = strconv.Unquote(parts[2])
		require.NoError(t, err)
		for label := range strings.SplitSeq(parts[3]+","+parts[4], ",") {
			if name, _, _ := strings.Cut(label, "="); name != "" {
				d.labels = append(d.labels, name)
			}
		}
		all = append(all, d.complete(c))
	}
	return all
}

// complete adds what the descriptor does not have.
func (d description) complete(c prometheus.Collector) description {
	const first = "until there is a first one"
	switch c.(type) {
	case *prometheus.CounterVec:
		d.kind, d.absent = "counter", first
	case *prometheus.GaugeVec:
		d.kind, d.absent = "gauge", first
	case *prometheus.HistogramVec:
		d.kind, d.absent = "histogram", first
	}
	for suffix, unit := range map[string]string{
		"_seconds": "seconds", "_bytes": "bytes", "_messages": "messages", "_rate": "messages per second",
	} {
		if strings.HasSuffix(d.name, suffix) {
			d.unit = unit
		}
	}
	if d.kind == "" { // a collector of its own, without a sample yet
		d.kind, d.absent = "gauge", first
	}
	return d
}

// sampled are the types of the samples that the collector has now, by descriptor.
func sampled(t testing.TB, c prometheus.Collector) map[string]string {
	t.Helper()
	samples := make(chan prometheus.Metric, 1000)
	c.Collect(samples)
	close(samples)
	kinds := map[string]string{}
	for sample := range samples {
		var written dto.Metric
		require.NoError(t, sample.Write(&written))
		kind := "gauge"
		switch {
		case written.Counter != nil:
			kind = "counter"
		case written.Histogram != nil:
			kind = "histogram"
		}
		kinds[fmt.Sprint(sample.Desc())] = kind
	}
	return kinds
}
