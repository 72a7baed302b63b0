// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
)

// served is a series as docs/metrics.md has it, which is compared with the code.
type served struct {
	kind   string
	labels []string
	isFull bool
}

// servedSeries are those of docs/metrics.md, by name, and those of the libraries that the dashboards use: on real parts
// they have answers.
func servedSeries(t *testing.T) map[string]served {
	t.Helper()
	content, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	found := map[string]served{
		"controller_runtime_reconcile_time_seconds": {kind: "histogram", labels: []string{"controller"}},
	}
	for _, name := range []string{
		"up", "process_resident_memory_bytes", "process_cpu_seconds_total", "go_gc_gomemlimit_bytes", "go_goroutines",
	} {
		found[name] = served{}
	}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| ([^|]*) \\| [^|]* \\| ([^|]*) \\|")
	for _, cells := range row.FindAllStringSubmatch(string(content), -1) {
		found[cells[1]] = served{kind: cells[2], labels: strings.Split(cells[3], ", "), isFull: cells[4] == "Full"}
	}
	require.Greater(t, len(found), 40)
	return found
}

// find returns a series, of a histogram by the names of its parts.
func find(all map[string]served, name string) (served, bool) {
	if s, found := all[name]; found {
		return s, s.kind != "histogram"
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, suffix); cut {
			s, found := all[base]
			return s, found && s.kind == "histogram"
		}
	}
	return served{}, false
}

func TestSeriesExist(t *testing.T) {
	all := servedSeries(t)
	for name, dashboard := range allDashboards(t) {
		for _, expression := range expressions(dashboard) {
			series := dashboards.Series(expression)
			require.NotEmpty(t, series, expression)
			for _, one := range series {
				_, found := find(all, one)
				require.True(t, found, "%s reads %s, which no program has: %s", name, one, expression)
			}
		}
	}
}

func TestLabelsExist(t *testing.T) {
	all := servedSeries(t)
	grouped := regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	legend := regexp.MustCompile(`\{\{(\w+)\}\}`)
	eachPanel(t, func(t *testing.T, panel dashboards.Panel) {
		for _, target := range panel.Targets {
			known := []string{"le", "job", "instance"}
			for _, one := range dashboards.Series(target.Expression) {
				series, _ := find(all, one)
				known = append(known, series.labels...)
			}
			var used []string
			for _, group := range grouped.FindAllStringSubmatch(target.Expression, -1) {
				used = append(used, strings.Split(group[1], ", ")...)
			}
			for _, label := range legend.FindAllStringSubmatch(target.LegendFormat, -1) {
				used = append(used, label[1])
			}
			require.Subset(t, known, used, target.Expression)
		}
	})
}

func TestPanelsSayWhenTheyNeedAllSeries(t *testing.T) {
	all := servedSeries(t)
	eachPanel(t, func(t *testing.T, panel dashboards.Panel) {
		needsFull := slices.ContainsFunc(panel.Targets, func(target dashboards.Target) bool {
			return slices.ContainsFunc(dashboards.Series(target.Expression), func(name string) bool {
				series, _ := find(all, name)
				return series.isFull
			})
		})
		require.Equal(t, needsFull, strings.Contains(panel.Description, "--policy-metrics=Full"), panel.Description)
	})
}
