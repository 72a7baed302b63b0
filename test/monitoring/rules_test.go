// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
)

const rulesFile = "../../deploy/monitoring/rules.yaml"

func TestMain(m *testing.M) { shared.Main(m, thePromtool) }

// thePromtool is built by the first test that needs it, unless it is in the cache.
var thePromtool = shared.New("promtool", func(ctx context.Context) (string, error) {
	bins, err := binaries.BuildPrometheus(ctx, os.Stderr)
	return bins.Promtool, err
}, func(string) error { return nil })

// rule is an alert, or what is recorded.
type rule struct {
	Alert       string            `json:"alert"`
	Record      string            `json:"record"`
	Expr        string            `json:"expr"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func rules(t *testing.T) (all []rule) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	content, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &file))
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

// alerts are the names of all alerts.
func alerts(t *testing.T) (names []string) {
	t.Helper()
	for _, r := range rules(t) {
		if r.Alert != "" {
			names = append(names, r.Alert)
		}
	}
	return names
}

func TestEachAlertHasASeverityASentenceAndItsPlaceInTheRunbook(t *testing.T) {
	const runbook = "https://github.com/pulsar-autoscaler/pulsar-autoscaler/blob/main/docs/runbook.md#"
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		t.Run(r.Alert, func(t *testing.T) {
			require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"])
			require.Equal(t, runbook+strings.ToLower(r.Alert), r.Annotations["runbook_url"])
			summary := r.Annotations["summary"]
			require.True(t, strings.HasSuffix(summary, "."), summary)
			require.NotContains(t, regexp.MustCompile(`{{.*?}}`).ReplaceAllString(summary, ""), ". ", "one sentence")
			require.Contains(t, summary, ": ", "what is wrong, and what to do")
			require.Len(t, r.Annotations, 2)
		})
	}
}

// A series of another name is absent, and its alert never fires.
func TestRulesAskForSeriesOfTheCode(t *testing.T) {
	metrics, err := os.ReadFile("../../docs/metrics.md")
	require.NoError(t, err)
	ours, part := regexp.MustCompile(`[a-z_:]*pulsar_autoscaler_[a-z0-9_:]+`), regexp.MustCompile(`_(bucket|sum|count)$`)
	recorded := map[string]bool{}
	for _, r := range rules(t) {
		recorded[r.Record] = true
	}
	for _, r := range rules(t) {
		for _, name := range ours.FindAllString(r.Expr, -1) {
			if !recorded[name] {
				require.Contains(t, string(metrics), "`"+part.ReplaceAllString(name, "")+"`", r.Alert+r.Record)
			}
		}
	}
}

// TestSavedReplicasOfAPolicyCountOnce: each leader has a series of its own, which a change of the leader ends.
func TestSavedReplicasOfAPolicyCountOnce(t *testing.T) {
	t.Parallel()
	found, err := dashboards.Read("../../deploy/monitoring/dashboards")
	require.NoError(t, err)
	var saved string
	for _, panel := range found["fleet"].Panels {
		if panel.Title == "Replicas saved" {
			saved = panel.Targets[0].Expression
		}
	}
	const series = `pulsar_autoscaler_policy_running_replicas{namespace="media",policy="resize",instance="`
	content, err := yaml.Marshal(map[string]any{"tests": []any{map[string]any{
		"interval": "1m",
		"input_series": []any{
			map[string]string{"series": series + `a"}`, "values": "2 10 2 stale"},
			map[string]string{"series": series + `b"}`, "values": "_ _ _ 2 10 4"},
		},
		"promql_expr_test": []any{map[string]any{
			"expr": dashboards.Fill(saved, map[string]string{
				"namespace": "media", "policy": "resize", "__range": "6m", "__interval": "1m",
			}),
			"eval_time": "5m", "exp_samples": []any{map[string]any{"labels": "{}", "value": 5}}, // 10 - 30 / 6
		}},
	}}})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "saved.yaml")
	require.NoError(t, os.WriteFile(file, content, 0o600))
	out, err := exec.CommandContext(t.Context(), thePromtool.Need(t), "test", "rules", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestPromtoolAcceptsTheRules(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), thePromtool.Need(t), "check", "rules", "--lint=all", "--lint-fatal",
		rulesFile).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// The chart has monitors for the Prometheus operator; the runbook has the same for others.
func TestTheScrapeOfTheRunbookFindsTheScalerToo(t *testing.T) {
	t.Parallel()
	_, scrape, _ := strings.Cut(page(t, "runbook.md"), "```yaml\n")
	scrape, _, _ = strings.Cut(scrape, "```")
	content, err := os.ReadFile("../../deploy/scaler/deployment.yaml")
	require.NoError(t, err)
	var scaler appsv1.Deployment
	require.NoError(t, yaml.UnmarshalStrict(content, &scaler))
	const component = "app.kubernetes.io/component"
	pod := scaler.Spec.Template
	require.Contains(t, scrape, "label: "+component+"="+pod.Labels[component]+"}")
	require.Contains(t, scrape, "regex: "+pod.Spec.Containers[0].ReadinessProbe.HTTPGet.Port.StrVal+",")

	file := filepath.Join(t.TempDir(), "prometheus.yaml")
	require.NoError(t, os.WriteFile(file, []byte(scrape), 0o600))
	out, err := exec.CommandContext(t.Context(), thePromtool.Need(t), "check", "config", "--syntax-only",
		file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestRulesDoWhatTheirTestsSay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			out, err := exec.CommandContext(t.Context(), thePromtool.Need(t), "test", "rules", file).CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

func TestEachAlertIsTestedFiringAndNotFiring(t *testing.T) {
	type tested struct{ firing, quiet bool }
	found := map[string]tested{}
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		var of struct {
			Tests []struct {
				Alerts []struct {
					Name     string `json:"alertname"`
					Expected []any  `json:"exp_alerts"`
				} `json:"alert_rule_test"`
			} `json:"tests"`
		}
		require.NoError(t, yaml.Unmarshal(content, &of))
		for _, test := range of.Tests {
			for _, alert := range test.Alerts {
				fires := len(alert.Expected) > 0
				found[alert.Name] = tested{found[alert.Name].firing || fires, found[alert.Name].quiet || !fires}
			}
		}
	}
	for _, name := range alerts(t) {
		require.Equal(t, tested{true, true}, found[name], name)
	}
}
