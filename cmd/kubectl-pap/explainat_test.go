// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestExplainShowsTheEventsUntilATime(t *testing.T) {
	p := scaledPolicy("resize")
	p.Status.Limits = &v1alpha1.Limits{
		MinReplicas: 5, MaxReplicas: 20, Schedules: []v1alpha1.ScheduleName{"business-hours"},
	}
	server := newAPIServer(t, p)
	event := func(after time.Duration, reason, message string) corev1.Event {
		return corev1.Event{
			Reason: reason, Message: message, EventTime: metav1.NewMicroTime(fixture.Noon().Add(after)),
		}
	}
	limited := event(time.Minute, "TooManyReplicas", "the load needs more replicas than maxReplicas")
	limited.Series = &corev1.EventSeries{
		Count: 3, LastObservedTime: metav1.NewMicroTime(fixture.Noon().Add(4 * time.Minute)),
	}
	old := corev1.Event{Reason: "Stale", Message: "no good answer", FirstTimestamp: metav1.NewTime(fixture.Noon())}
	server.events.Items = []corev1.Event{
		event(2*time.Minute, "DesiredReplicasChanged", "8 -> 20: 900/s arriving / (0.93 x 61.3/s per replica) = 15.79"),
		limited, old, event(6*time.Minute, "DesiredReplicasChanged", "20 -> 8"),
	}
	explainAt := func(at string) string {
		out, err := kubectlPap(t, "", "explain", "resize", "--at", at, "-n", "media", "--server", server.url)
		require.NoError(t, err)
		return out
	}
	out := explainAt("2026-11-21T12:05:00Z")
	require.Contains(t, out, `
EVENTS        until 2026-11-21T12:05:00Z, the newest first
  12:02:00    DesiredReplicasChanged: 8 -> 20: 900/s arriving / (0.93 x 61.3/s
              per replica) = 15.79
  12:01:00    TooManyReplicas: the load needs more replicas than maxReplicas (3
              times until 12:04:00)
  12:00:00    Stale: no good answer
`)
	require.NotContains(t, out, "MEASURED", "the status is of now")
	require.NotContains(t, out, "business-hours", "so are its limits")
	require.Contains(t, server.reads(), "/api/v1/namespaces/media/events?involvedObject.kind=AutoscalingPolicy,"+
		"involvedObject.name=resize")
	require.Contains(t, explainAt("2026-11-21T11:59:59Z"), "\n  none        Kubernetes keeps events for an hour")
}

func TestExplainShowsWhatPrometheusRecordedAtATime(t *testing.T) {
	server := newAPIServer(t, scaledPolicy("resize"))
	series := func(name, value string, labels ...string) map[string]any {
		metric := map[string]string{"__name__": "pulsar_autoscaler_policy_" + name, "namespace": "media", "policy": "resize"}
		for i := 0; i < len(labels); i += 2 {
			metric[labels[i]] = labels[i+1]
		}
		return map[string]any{"metric": metric, "values": [][]any{{fixture.Noon().Unix(), value}}}
	}
	var result []any
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.FormValue("query"); got != `{__name__=~"pulsar_autoscaler_policy_.+",namespace="media",policy="resize"}` {
			http.Error(w, got, http.StatusBadRequest)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"status": "success", "data": map[string]any{"resultType": "matrix", "result": result},
		})
	}))
	t.Cleanup(prometheus.Close)
	server.events.Items = []corev1.Event{{
		Reason: "TooManyReplicas", Message: "the load needs more",
		EventTime: metav1.NewMicroTime(fixture.Noon().Add(-time.Minute)),
		Series:    &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(fixture.Noon())},
	}}
	explain := func(args ...string) (string, error) {
		return kubectlPap(t, "", append([]string{
			"explain", "resize", "--at", "2026-11-21T12:00:00Z", "-n", "media", "--prometheus", prometheus.URL, "--server",
			server.url,
		}, args...)...)
	}
	result = []any{
		series("info", "1", "mode", "Auto"), series("publish_rate", "412"), series("desired_replicas", "0"),
		series("ready_messages", "1234567.6"),
		series("held", "1", "reason", "ScaleDownStabilized"), series("wait_seconds", "22.34567"),
		series("condition", "1", "type", "ObjectiveMet", "status", "False", "reason", "TooManyReplicas"),
		series("latency_objective_seconds", "30"), series("min_replicas", "0"), series("max_replicas", "20"),
	}
	out, err := explain()
	require.NoError(t, err)
	require.Contains(t, out, `
RECORDED      at 2026-11-21T12:00:00Z
  mode        Auto
  backlog     1234568 messages
  arriving    412 messages/s
  processed   unknown
  wait        22.35 s of 30 s
  capacity    unknown
  decided     0, of 0 to 20
  in the spec unknown
  running     unknown
  held by     ScaleDownStabilized
  limited by  nothing
  attention   ObjectiveMet/False/TooManyReplicas

EVENTS `)
	out, err = explain("-o", "json")
	require.NoError(t, err)
	require.JSONEq(t, `{
		"namespace": "media", "name": "resize", "target": "Function/resize", "minReplicas": 1, "maxReplicas": 20,
		"latencyObjectiveSeconds": 30, "mode": "Auto", "generation": 1, "observedGeneration": 1,
		"at": "2026-11-21T12:00:00Z", "events": [{
			"time": "2026-11-21T11:59:00Z", "reason": "TooManyReplicas", "message": "the load needs more",
			"times": 3, "until": "2026-11-21T12:00:00Z"
		}],
		"recorded": {"readyMessages": 1234568, 
			"modes": ["Auto"], "publishedMessagesPerSecond": 412, "waitSeconds": 22.34567, "latencyObjectiveSeconds": 30,
			"desiredReplicas": 0, "minReplicas": 0, "maxReplicas": 20, "heldBy": ["ScaleDownStabilized"],
			"attention": ["ObjectiveMet/False/TooManyReplicas"]
		}
	}`, out)
	result = []any{}
	out, err = explain()
	require.NoError(t, err)
	require.Contains(t, out, "\nRECORDED      Prometheus has no series of the policy at 2026-11-21T12:00:00Z\n")
	_, err = kubectlPap(t, "", "explain", "resize", "--prometheus", prometheus.URL)
	require.ErrorContains(t, err, "set --at")
}

func TestATimeIsATimeOrHowLongAgo(t *testing.T) {
	for text, want := range map[string]time.Time{
		"10m":                       fixture.Noon().Add(-10 * time.Minute),
		"2026-11-21T12:00:00Z":      fixture.Noon(),
		"2026-11-21T13:00:00+01:00": fixture.Noon(),
	} {
		at, err := parseTime(text, fixture.Noon())
		require.NoError(t, err)
		require.True(t, want.Equal(at), text)
	}
	for _, text := range []string{"14:00", "-10m", "yesterday"} {
		_, err := parseTime(text, fixture.Noon())
		require.ErrorContains(t, err, "how long ago, such as 10m")
	}
}
