// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
)

func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	require.NoError(t, err)
	return string(text)
}

// pageQueries are the expressions of docs/observability.md by the heading above them. An indented line continues one.
func pageQueries(t *testing.T) map[string][]string {
	t.Helper()
	byHeading := map[string][]string{}
	for _, section := range strings.Split(page(t, "observability.md"), "\n## ")[1:] {
		heading, text, _ := strings.Cut(section, "\n")
		for _, block := range regexp.MustCompile("(?s)```promql\n(.*?)```").FindAllStringSubmatch(text, -1) {
			for line := range strings.Lines(block[1]) {
				queries := byHeading[heading]
				switch {
				case strings.HasPrefix(line, "#"):
				case strings.HasPrefix(line, " "):
					require.NotEmpty(t, queries, line)
					queries[len(queries)-1] += line
				default:
					byHeading[heading] = append(queries, line)
				}
			}
		}
	}
	return byHeading
}

func TestTheTenQuestionsHaveAnAnswerByEachWay(t *testing.T) {
	sections := strings.Split(page(t, "observability.md"), "\n## ")[1:]
	require.Len(t, sections, 10)
	for _, section := range sections {
		heading, text, _ := strings.Cut(section, "\n")
		require.Contains(t, text, "\nkubectl ", heading)
		require.Contains(t, text, "```promql\n", heading)
		require.Regexp(t, `\nDashboard (Fleet|Function|Autoscaler): `, text, heading)
	}
}

func TestTheAnswersUseSeriesThatExist(t *testing.T) {
	known := map[string]bool{}
	row := regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\|")
	for _, row := range row.FindAllStringSubmatch(page(t, "metrics.md"), -1) {
		known[row[1]] = true
		if row[2] == "histogram" {
			known[row[1]+"_bucket"], known[row[1]+"_sum"], known[row[1]+"_count"] = true, true, true
		}
	}
	require.NotEmpty(t, known)
	for _, r := range rules(t) {
		known[r.Record] = true
	}
	for heading, queries := range pageQueries(t) {
		for _, query := range queries {
			series := dashboards.Series(query)
			require.NotEmpty(t, series, "%s: %s", heading, query)
			for _, name := range series {
				require.True(t, known[name], "%s: no series %s", heading, name)
			}
		}
	}
}

func TestTheAnswersAreQueriesThatPrometheusCanRead(t *testing.T) {
	var recorded []rule
	for _, queries := range pageQueries(t) {
		for _, query := range queries {
			recorded = append(recorded, rule{Record: fmt.Sprintf("answer:%d", len(recorded)), Expr: query})
		}
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	content, err := yaml.Marshal(map[string][]group{"groups": {{"answers", recorded}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	out, err := exec.CommandContext(t.Context(), thePromtool.Need(t), "check", "rules", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestTheAnswersNamePanelsThatExist(t *testing.T) {
	panels := map[string]map[string]bool{}
	found, err := dashboards.Read("../../deploy/monitoring/dashboards")
	require.NoError(t, err)
	for name, dashboard := range found {
		short := strings.ToUpper(name[:1]) + name[1:]
		panels[short] = map[string]bool{}
		for _, panel := range dashboard.Panels {
			panels[short][panel.Title] = true
			for _, target := range panel.Targets {
				panels[short][target.LegendFormat] = true // a line of a panel
			}
		}
	}
	named := 0
	for paragraph := range strings.SplitSeq(page(t, "observability.md"), "\n\n") {
		if !strings.HasPrefix(paragraph, "Dashboard ") {
			continue
		}
		paragraph = strings.ReplaceAll(paragraph, "\n", " ")
		starts := regexp.MustCompile(`(Fleet|Function|Autoscaler): `).FindAllStringSubmatchIndex(paragraph, -1)
		for i, at := range starts {
			end := len(paragraph)
			if i+1 < len(starts) {
				end = starts[i+1][0]
			}
			on := paragraph[at[2]:at[3]]
			for _, panel := range regexp.MustCompile(`\*([^*]+)\*`).FindAllStringSubmatch(paragraph[at[1]:end], -1) {
				require.True(t, panels[on][panel[1]], "dashboard %s has no panel %q", on, panel[1])
				named++
			}
		}
	}
	require.Greater(t, named, 20)
}
