// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestExplainShowsTheEventsUntilATime(t *testing.T) {
	server := newPolicyServer(t, scaledPolicy("resize"))
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
	require.Contains(t, server.reads(), "/api/v1/namespaces/media/events?involvedObject.kind=AutoscalingPolicy,"+
		"involvedObject.name=resize")
	require.Contains(t, explainAt("2026-11-21T11:59:59Z"), "\n  none        Kubernetes keeps events for an hour")
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
