// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// worked is a successful demo of 160 s: 5 replicas 5 s after the step, 1 at the end.
func worked() outcome {
	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	at := func(seconds float64) time.Time { return begun.Add(time.Duration(seconds * float64(time.Second))) }
	return outcome{
		scenario: full(), begun: begun, ended: at(160),
		published: 11000, done: 11000, late: 11, p50: 8 * time.Second, p99: 28 * time.Second, waitKnown: true,
		replicaTime: 500 * time.Second,
		timeline: []pods.Sample{
			{Time: at(-9), Desired: 1},
			{Time: at(-8), Desired: 1, Started: 1},
			{Time: at(-5), Desired: 1, Started: 1, Ready: 1},
			{Time: at(25.25), Desired: 5, Started: 1, Ready: 1},
			{Time: at(26), Desired: 5, Started: 5, Ready: 1},
			{Time: at(35), Desired: 5, Started: 5, Ready: 5},
			{Time: at(120), Desired: 2, Started: 2, Ready: 2},
			{Time: at(140), Desired: 1, Started: 1, Ready: 1},
			{Time: at(170), Desired: 7, Started: 1, Ready: 1},
		},
		pulsar: "4.0.8", kubernetes: "v1.36.3",
	}
}

func TestSummarize(t *testing.T) {
	reaction, p50, p99 := 5.25, 8.0, 28.0
	require.Equal(t, summary{
		MessagesPublished: 11000, MessagesDone: 11000, MessagesLate: 11, ObjectiveSeconds: 30, ReplicaSeconds: 500,
		ReactionSeconds: &reaction, ReplicasMax: 5, ReplicasLast: 1, WaitP50Seconds: &p50, WaitP99Seconds: &p99,
		PulsarVersion: "4.0.8", KubernetesVersion: "v1.36.3", DurationSeconds: 160,
		Replicas: []step{{0, 1, 1}, {25.25, 5, 1}, {26, 5, 1}, {35, 5, 5}},
	}, summarize(worked()), "messages after the end do not count")
}

func TestVerdict(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*outcome)
		want   []error
	}{
		"nothing is wrong": {change: func(*outcome) {}},
		"replicas never rose": {
			func(o *outcome) { o.timeline = o.timeline[:3] }, []error{errNeverScaledUp},
		},
		"replicas rose before the load did": {
			func(o *outcome) { o.timeline[1].Desired, o.timeline[2].Desired = 5, 5 }, []error{errNeverScaledUp},
		},
		"replicas stayed": {
			func(o *outcome) { o.timeline = o.timeline[:7] }, []error{errNotBack},
		},
		"a message was lost": {
			func(o *outcome) { o.done-- }, []error{errUndone},
		},
		"everything is wrong at once": {
			func(o *outcome) { o.timeline, o.done = o.timeline[:3], 0 }, []error{errNeverScaledUp, errUndone},
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := worked()
			test.change(&o)
			err := summarize(o).verdict()
			if len(test.want) == 0 {
				require.NoError(t, err)
			}
			for _, want := range test.want {
				require.ErrorIs(t, err, want)
			}
		})
	}
}

func TestALostMessageIsShownAndNotHidden(t *testing.T) {
	var out strings.Builder
	o := worked()
	summarize(o).print(&out)
	require.Contains(t, out.String(), "11000 published, 11000 processed, none lost")
	require.Contains(t, out.String(), "11 messages took longer than 30 s (0.1 %)")
	require.Contains(t, out.String(), "5 at most, 1 at the end; 500 replica-seconds, while 5 all the time would take 800")

	o.done -= 3
	out.Reset()
	summarize(o).print(&out)
	require.Contains(t, out.String(), "3 LOST OR IN THE BACKLOG")
	require.NotContains(t, out.String(), "none lost")
}

func TestWhatIsUnknownIsNullInTheSummary(t *testing.T) {
	o := worked()
	o.timeline, o.waitKnown, o.p50, o.p99, o.published, o.done, o.late = o.timeline[:3], false, 0, 0, 0, 0, 0
	s := summarize(o)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(text, &fields))
	for _, name := range []string{"reaction_seconds", "wait_p50_seconds", "wait_p99_seconds"} {
		require.Contains(t, fields, name)
		require.Nil(t, fields[name], name)
	}
	require.InDelta(t, 1, fields["replicas_max"], 0)
	require.Len(t, fields, 15)

	var out strings.Builder
	s.print(&out)
	require.Contains(t, out.String(), "p50 unknown, p99 unknown")
	require.Contains(t, out.String(), "reaction   unknown")
}
