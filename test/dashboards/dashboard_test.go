// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package dashboards_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
)

const dir = "../../deploy/monitoring/dashboards"

func allDashboards(t *testing.T) map[string]dashboards.Dashboard {
	t.Helper()
	found, err := dashboards.Read(dir)
	require.NoError(t, err)
	return found
}

// eachPanel runs a test for every panel that is no row.
func eachPanel(t *testing.T, check func(t *testing.T, panel dashboards.Panel)) {
	t.Helper()
	for name, dashboard := range allDashboards(t) {
		for _, panel := range dashboard.Panels {
			if panel.Type != dashboards.Row {
				t.Run(name+"/"+panel.Title, func(t *testing.T) { check(t, panel) })
			}
		}
	}
}

func TestThereAreThreeDashboards(t *testing.T) {
	found := allDashboards(t)
	for _, name := range []string{"fleet", "function", "autoscaler"} {
		require.Equal(t, "pulsar-autoscaler-"+name, found[name].UID)
		require.NotEmpty(t, found[name].Description)
	}
	require.Len(t, found, 3)
}

func TestPanelsSayWhatTheyShow(t *testing.T) {
	eachPanel(t, func(t *testing.T, panel dashboards.Panel) {
		require.NotZero(t, panel.ID)
		require.NotEmpty(t, panel.Title)
		require.True(t, strings.HasSuffix(panel.Description, "."), "a sentence about the panel: %q", panel.Description)
		require.NotEmpty(t, panel.FieldConfig.Defaults.Unit)
		require.NotEmpty(t, panel.Targets)
		for _, target := range panel.Targets {
			require.NotEmpty(t, target.LegendFormat, target.Expression)
			require.NotEqual(t, "__auto", target.LegendFormat, target.Expression)
			require.NotEqual(t, target.Instant, target.Range, "a query is of now or over time: %s", target.Expression)
		}
	})
}

func TestUnitsFitTheSeries(t *testing.T) {
	eachPanel(t, func(t *testing.T, panel dashboards.Panel) {
		if panel.Type == "table" {
			return // a unit for each column
		}
		for _, target := range panel.Targets {
			if unit := unitOf(target.Expression); unit != "" {
				require.Equal(t, unit, panel.FieldConfig.Defaults.Unit, target.Expression)
			}
		}
	})
}

// unitOf is the unit that the names of series promise; empty where the expression makes another one of it.
func unitOf(expression string) string {
	isRate := strings.Contains(expression, "rate(") && !strings.Contains(expression, "histogram_quantile(")
	series := dashboards.Series(expression)
	for suffix, unit := range map[string]string{"_seconds": "s", "_bytes": "bytes", "_ratio": "percentunit"} {
		isOther := func(name string) bool {
			return !strings.HasSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_total"), suffix)
		}
		if !isRate && !slices.ContainsFunc(series, isOther) {
			return unit
		}
	}
	return ""
}

func TestStylesAreForSeriesThatThePanelHas(t *testing.T) {
	eachPanel(t, func(t *testing.T, panel dashboards.Panel) {
		var legends []string
		for _, target := range panel.Targets {
			legends = append(legends, target.LegendFormat)
		}
		if panel.Type == "table" {
			return // columns are labels too
		}
		for _, override := range panel.FieldConfig.Overrides {
			name := override.Matcher.Options
			if override.Matcher.ID == "byName" {
				require.Contains(t, legends, name)
			}
		}
	})
}

var aSource = regexp.MustCompile(`"datasource": \{\s*"type": "(.*?)",\s*"uid": "(.*?)"`)

// TestAnImportAsksForNothing: each data source is the variable, which every Grafana with a Prometheus has a value for.
func TestAnImportAsksForNothing(t *testing.T) {
	for name := range allDashboards(t) {
		text, err := os.ReadFile(filepath.Join(dir, name+".json"))
		require.NoError(t, err)
		var read struct {
			Inputs   []any `json:"__inputs"`
			Requires []struct {
				Type, ID string
			} `json:"__requires"`
		}
		require.NoError(t, json.Unmarshal(text, &read))
		require.Equal(t, []any{}, read.Inputs, name)
		require.Len(t, read.Requires, 2)
		sources := aSource.FindAllStringSubmatch(string(text), -1)
		require.Len(t, sources, strings.Count(string(text), `"datasource": `), name)
		for _, source := range sources {
			require.Equal(t, []string{read.Requires[1].ID, "${datasource}"}, source[1:], name)
		}
	}
}

func TestQueriesUseVariablesThatExist(t *testing.T) {
	grafanas := []string{"__range", "__interval", "__rate_interval"}
	for name, dashboard := range allDashboards(t) {
		t.Run(name, func(t *testing.T) {
			known := slices.Clone(grafanas)
			for _, variable := range dashboard.Templating.List {
				require.NotEmpty(t, variable.Label)
				known = append(known, variable.Name)
			}
			require.Contains(t, known, "datasource")
			for _, expression := range expressions(dashboard) {
				require.Subset(t, known, dashboards.Variables(expression), expression)
			}
		})
	}
}

// A variable of which All is any value at all selects our series only where no others are queried with it.
func TestAllSelectsOurSeriesAlone(t *testing.T) {
	series := regexp.MustCompile(`([a-zA-Z_:][\w:]*){[^}]*`)
	for name, dashboard := range allDashboards(t) {
		for _, variable := range dashboard.Templating.List {
			if variable.AllValue != ".*" {
				continue
			}
			for _, expression := range expressions(dashboard) {
				for _, found := range series.FindAllStringSubmatch(expression, -1) {
					if strings.Contains(found[0], "$"+variable.Name) {
						require.Contains(t, found[1], "pulsar_autoscaler_", "%s: %s", name, expression)
					}
				}
			}
		}
	}
}

func TestLinksLeadToDashboardsThatExist(t *testing.T) {
	uids := map[string]bool{}
	for _, dashboard := range allDashboards(t) {
		uids[dashboard.UID] = true
	}
	for name := range allDashboards(t) {
		content, err := os.ReadFile(filepath.Join(dir, name+".json"))
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`"/d/([\w-]+)`).FindAllSubmatch(content, -1) {
			require.True(t, uids[string(link[1])], "%s links to %s", name, link[1])
		}
		require.True(t, json.Valid(content))
	}
}

// What npm generates is compared by its checksum, so that the test needs neither npm nor a registry.
func TestDashboardsAreGeneratedFromTheirSources(t *testing.T) {
	const fix = "run make dashboards and commit what it writes"
	sums, err := os.ReadFile(filepath.Join(dir, "generated.sum"))
	require.NoError(t, err)
	listed := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, found := strings.Cut(strings.TrimSpace(line), "  ")
		require.True(t, found, line)
		listed[name] = sum
	}
	var present []string
	for _, pattern := range []string{"*.json", "src/*.mjs"} {
		paths, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		require.NoError(t, err)
		present = append(present, paths...)
	}
	require.Len(t, listed, len(present), fix)
	for _, path := range present {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		sum := sha256.Sum256(content)
		require.Equal(t, listed[filepath.ToSlash(name)], hex.EncodeToString(sum[:]), "%s: %s", name, fix)
	}
}

// expressions are all of a dashboard: of panels, of annotations and of variables, of which label_values is left out.
func expressions(dashboard dashboards.Dashboard) []string {
	var found []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			found = append(found, target.Expression)
		}
	}
	for _, annotation := range dashboard.Annotations.List {
		found = append(found, annotation.Expression)
	}
	for _, variable := range dashboard.Templating.List {
		if query, isValues := strings.CutPrefix(variable.Definition, "label_values("); isValues {
			query, _, _ = strings.Cut(query, ", ")
			found = append(found, query)
		}
	}
	return found
}

// The pages say *Panel*, *legend of a panel* or *dashboard*.
func TestPagesNamePanelsThatExist(t *testing.T) {
	// Buttons of Grafana, and short forms.
	known := []string{"Dashboards", "New", "Import", "Why", "wanted", "desired", "spec", "running"}
	for name, dashboard := range allDashboards(t) {
		known = append(known, name)
		for _, panel := range dashboard.Panels {
			known = append(known, panel.Title)
			for _, target := range panel.Targets {
				known = append(known, target.LegendFormat)
			}
		}
	}
	for _, page := range []string{"dashboards.md", "observability.md"} {
		content, err := os.ReadFile(filepath.Join("../../docs", page))
		require.NoError(t, err)
		for paragraph := range strings.SplitSeq(string(content), "\n\n") {
			if page == "observability.md" && !strings.HasPrefix(paragraph, "Dashboard ") {
				continue // elsewhere it is emphasis
			}
			for i, name := range strings.Split(paragraph, "*") {
				if isName := i%2 == 1; isName {
					require.Contains(t, known, strings.Join(strings.Fields(name), " "), "%s: %s", page, paragraph)
				}
			}
		}
	}
}
