// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// newPrometheus serves range queries about policy media/resize: the value of an expression that contains the key, the
// same at all times. It returns its URL.
func newPrometheus(t *testing.T, values map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number := func(key string) float64 {
			value, _ := strconv.ParseFloat(r.FormValue(key), 64)
			return value
		}
		result := []any{}
		for part, value := range values {
			if !strings.Contains(r.FormValue("query"), part) {
				continue
			}
			var points [][]any
			for at := number("start"); at <= number("end"); at += number("step") {
				points = append(points, []any{at, value})
			}
			result = append(result, map[string]any{
				"metric": map[string]string{"namespace": "media", "policy": "resize"}, "values": points,
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": "success", "data": map[string]any{"resultType": "matrix", "result": result},
		})
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// reported is a month of 3 replicas with a peak of 5, late for 36 s in each hour.
func reported(t *testing.T) string {
	t.Helper()
	return newPrometheus(t, map[string]string{
		"late_seconds_total": "36", "objective_met": "59.4", "replica_seconds_total": "10800",
		"count_over_time(max by (namespace, policy) (pulsar_autoscaler_policy_running_replicas": "60",
		"max_over_time(pulsar_autoscaler_policy_running_replicas":                               "5",
		"sum(avg by (namespace, policy) (avg_over_time(pulsar_autoscaler_policy_publish_rate":   "123.5",
	})
}

func TestReportWritesEachForm(t *testing.T) {
	url := reported(t)
	report := func(args ...string) string {
		out, err := kubectlPap(t, "", append([]string{
			"report", "--prometheus", url, "--until", "2026-11-27T00:10:00Z",
		}, args...)...)
		require.NoError(t, err)
		return out
	}
	const period = "2026-10-28T00:00:00Z to 2026-11-27T00:00:00Z (720h)"
	text := report("-A", "--cost-per-replica-hour", "0.5")
	require.Contains(t, text, "1 policies, "+period+"\nLatency objectives were met 99.00% of the time, with 40% fewer")
	require.Contains(t, text, "\nmedia/resize  99.00%  7h12m  2160.0     1440.0  40%     1080.00  720.00\n")
	require.Contains(t, text, "\nPOLICY        NO DATA\nmedia/resize  0s\n", "the columns that do not fit")
	var decoded struct {
		Items []struct {
			Name         string  `json:"name"`
			ReplicaHours float64 `json:"replicaHours"`
		} `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(report("-n", "media", "-o", "json", "--by", "namespace")), &decoded))
	require.Equal(t, "media", decoded.Items[0].Name)
	require.InDelta(t, 2160, decoded.Items[0].ReplicaHours, 0)
	require.Contains(t, report("-A", "-o", "csv"),
		"\n2026-10-28T00:00:00Z,2026-11-27T00:00:00Z,media/resize,1,99,432,2160,1440,40,,,,0\n")
	page := report("-A", "-o", "html")
	require.True(t, strings.HasPrefix(page, "<!doctype html>"))
	require.Contains(t, page, period)
	require.Contains(t, page, `"name":"published","seconds":[0,3600,`)
	require.Contains(t, page, `"values":[123.5,123.5,`)
	require.Contains(t, page, "media/resize: 60 replica-hours, % of each day&#39;s peak, 1 late, % of the time")
}

func TestReportGroupsByALabelOfThePolicies(t *testing.T) {
	server := newAPIServer(t, scaledPolicy("resize", func(p *v1alpha1.AutoscalingPolicy) {
		p.Labels = map[string]string{"team": "imaging"}
	}))
	for key, want := range map[string]string{"team": "imaging", "owner": "-"} {
		out, err := kubectlPap(t, "", "report", "-A", "--prometheus", reported(t), "--by", "label="+key,
			"--server", server.url)
		require.NoError(t, err)
		require.Contains(t, out, "\nLABEL="+strings.ToUpper(key))
		require.Contains(t, out, "\n"+want+" ")
	}
}

func TestReportAndPlanNameTheFix(t *testing.T) {
	const prometheus = "--prometheus=http://p"
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no Prometheus":          {[]string{"report", "-A"}, `required flag(s) "prometheus" not set`},
		"an unknown group":       {[]string{"report", "-A", prometheus, "--by", "team"}, "or label= with the key of a label"},
		"a label without a key":  {[]string{"report", "-A", prometheus, "--by", "label="}, "label= with the key"},
		"a cost below nothing":   {[]string{"report", "-A", prometheus, "--cost-per-replica-hour=-1"}, "it must be from 0"},
		"a time without a unit":  {[]string{"report", "-A", prometheus, "--since", "7"}, `--since is "7"`},
		"no policy to plan":      {[]string{"plan", prometheus}, "accepts 1 arg(s)"},
		"an objective too short": {[]string{"plan", "a", prometheus, "--objectives", "1ms"}, "must be from 1s to 24h"},
		"too many objectives": {
			[]string{"plan", "a", prometheus, "--objectives", strings.Repeat("1s,", 20) + "1s"}, "at most 20",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubectlPap(t, "", tt.args...)
			require.ErrorContains(t, err, tt.want)
		})
	}
}

func TestPlanShowsTheCostOfObjectivesAndTheLimits(t *testing.T) {
	checkpoint, err := policy.State{Plateau: policy.Plateau{
		Stage: policy.Limited, Replicas: 4, Each: 50, Reference: policy.Output{Replicas: 4, Processed: 200},
	}}.Encode()
	require.NoError(t, err)
	server := newAPIServer(t, scaledPolicy("resize", func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.MaxReplicas, p.Status.Signals.UsefulReplicas = 10, new(int32(6))
		p.Status.WorkingCheckpoint = checkpoint
	}))
	url := newPrometheus(t, map[string]string{
		"publish_rate": "100", "capacity_messages_per_second": "50", "spec_replicas": "3",
	})
	args := []string{
		"plan", "resize", "-n", "media", "--prometheus", url, "--since", "1h", "--start-time", "20s",
		"--objectives", "1m", "--server", server.url,
	}
	out, err := kubectlPap(t, "", args...)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^30s \(now\) +\d`, out)
	require.Regexp(t, `(?m)^1m0s +\d`, out)
	require.Regexp(t, `(?m)^limit behind the Function +4 +200 .*200%`, out)
	require.Regexp(t, `(?ms)^limit behind.*^partitions +6 +300 .*^maxReplicas +10 +500 `, out)
	out, err = kubectlPap(t, "", append(args, "-o", "json")...)
	require.NoError(t, err)
	var curve struct {
		Items  []struct{ LatencyObjectiveSeconds float64 } `json:"items"`
		Limits []struct{ Replicas int }                    `json:"limits"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &curve))
	require.Len(t, curve.Items, 2)
	require.Len(t, curve.Limits, 3)
}

func TestPlanShowsThePartitionsOfASubscriptionThatTheyLimit(t *testing.T) {
	server := newAPIServer(t, scaledPolicy("resize"))
	url := newPrometheus(t, map[string]string{
		"publish_rate": "100", "capacity_messages_per_second": "50", "spec_replicas": "3",
	})
	for kind, limited := range map[string]bool{"Exclusive": true, "Failover": true, "Shared": false} {
		out, err := kubectlPap(t, "", "plan", "resize", "-n", "media", "--prometheus", url, "--since", "1h",
			"--start-time", "20s", "--objectives", "1m", "--server", server.url, "--partitions", "6",
			"--subscription-type", kind)
		require.NoError(t, err)
		require.Equal(t, limited, regexp.MustCompile(`(?m)^partitions +6 `).MatchString(out), "%s: %s", kind, out)
	}
}
