// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/outcome"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

// report is a month of policies with long names, of which some are late, and one is unknown.
func report() page.Page {
	const day, names = 24 * 3600.0, 9
	from := time.Date(2026, 10, 28, 0, 0, 0, 0, time.UTC)
	c := outcome.Config{From: from, To: from.Add(30 * 24 * time.Hour), CostPerReplicaHour: new(0.05)}
	for n := range names {
		one := history.PolicyOutcome{
			Namespace: "a-namespace-of-a-team-" + strconv.Itoa(n), Name: "transcode-videos-of-customers",
			LateReasons: map[string]float64{"TooManyReplicas": float64(n) * 600, "ReplicasHeld": 4000},
		}
		for at := range 30 {
			one.Days = append(one.Days, history.Outcome{
				KnownSeconds: day, LateSeconds: day * float64(n*(at%7)) / 1000, RunningSeconds: day, WholeSeconds: day,
				ReplicaSeconds: day * (3 + float64(n)/10), PeakSeconds: day * 5,
			})
			one.Scaled = one.Scaled.Plus(one.Days[at])
		}
		c.Policies = append(c.Policies, one)
	}
	c.Policies = append(c.Policies, history.PolicyOutcome{Namespace: "shop", Name: "new"})
	for at := range 30 * 24 {
		step := history.Step{Start: from.Add(time.Duration(at) * time.Hour)}
		if at < 300 || at > 320 {
			busy := 1 + math.Sin(float64(at)/24*2*math.Pi)
			step.Load, step.Backlog, step.WithLoad = new(5000*busy), new(200*busy*busy), new(float64(names))
			step.Replicas, step.Peak, step.Scaled = new(20+20*busy), new(60.0), new(float64(names))
		}
		c.Course = append(c.Course, step)
	}
	return outcome.New(c).Page()
}

func TestTheReportInABrowser(t *testing.T) {
	chromium := start(t)
	for name, test := range map[string]func(*testing.T, tab){
		"draws a panel for each of the five latest policies": drawsTheReport,
		"follows the light and dark scheme":                  followsTheScheme,
		"prints all charts on light paper":                   prints(11),
		"cuts nothing off at any width":                      cutsNothingOff,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(chromium, t, report())) })
	}
}

func drawsTheReport(t *testing.T, one tab) {
	require.Equal(t, float64(4+6), one.number("document.querySelectorAll('.plot canvas').length"))
	require.Equal(t, float64(10), one.number("document.querySelectorAll('.scatter circle').length"))
	require.Equal(t, float64(6), one.number("document.querySelectorAll('.scatter .name').length"))
	one.hover("2", "0.4285") // in the gap
	require.Contains(t, one.reading("2"), "running unknown, each day's peak unknown")
	require.Empty(t, one.complaints())
}
