// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// chartStep is the time between two points of a panel.
const chartStep = 2 * time.Second

// mayBeEmpty are queries, by panel and legend, that may have no data on the stage, each with the reason.
func mayBeEmpty() map[string]string {
	return map[string]string{
		"Held by/{{reason}}":         "nothing may be held at the end",
		"What to do/In force":        "all conditions may be as they should be at the end",
		"Memory/Limit":               "the process has no GOMEMLIMIT here",
		"Writes/Replicas {{result}}": "the HPA writes the replicas",
	}
}

// A load step above the capacity of maxReplicas shows everything: a scale-up, a limit, late messages, and recovery.
func TestObservabilityDashboardsAnswerEachQuery(t *testing.T) {
	t.Parallel()
	const name = "charted"
	server := observed(t)
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 50 * time.Millisecond, StartDelay: time.Second})
	p := newPolicy(name)
	p.Spec.MaxReplicas, p.Spec.LatencyObjective.Duration = 4, 5*time.Second
	p.Spec.ObjectivePercent = new(int32(99))
	from := time.Now()
	addPolicy(t, p)
	calm := addFunction(t, stage.FunctionConfig{Name: "charted-calm", ServiceTime: 10 * time.Millisecond})
	addPolicy(t, newPolicy(calm.Name))
	publish(t, calm, load.Constant(20))
	lost := newPolicy("charted-without-target")
	addPolicy(t, lost)
	t.Cleanup(func() { require.NoError(t, scene.Client.Delete(context.WithoutCancel(t.Context()), lost)) })
	rate := newDial(t, f, 6)
	labels := fmt.Sprintf(`namespace=%q, policy=%q`, stage.Namespace, name)
	is := func(want float64) func(float64) bool { return func(value float64) bool { return value == want } }
	awaitSample(t, f, "pulsar_autoscaler_policy_objective_met{"+labels+"}", is(1))
	rate.turn(100)
	awaitSample(t, f, `pulsar_autoscaler_policy_limited{by="maxReplicas", `+labels+"}", is(1))
	awaitSample(t, f, "pulsar_autoscaler_policy_objective_met{"+labels+"}", is(0))
	awaitSample(t, f, "pulsar_autoscaler_policy_objective_burn_rate{"+labels+"}",
		func(value float64) bool { return value > 1 })
	rate.turn(6)
	awaitSample(t, f, "min_over_time(pulsar_autoscaler_policy_objective_met{"+labels+"}[5s])", is(1))
	awaitSample(t, f, "pulsar_autoscaler_policy_running_replicas{"+labels+"}",
		func(value float64) bool { return value < 4 })
	f.AwaitPolicy(t, "a budget that is spent", func(p *v1alpha1.AutoscalingPolicy) bool {
		a := p.Status.Attainment
		return a != nil && a.Percent < 99 && a.BudgetLeftPercent == 0
	})

	found, err := dashboards.Read("../../deploy/monitoring/dashboards")
	require.NoError(t, err)
	seconds := strconv.Itoa(int(time.Since(from).Seconds()))
	values := map[string]string{
		"policy": name, "job": "pulsar-autoscaler",
		"__range": seconds + "s", "__interval": chartStep.String(), "__rate_interval": "10s",
	}
	for file, dashboard := range found {
		t.Run(file, func(t *testing.T) {
			values := maps.Clone(values)
			values["namespace"] = stage.Namespace
			// A panel of the present is empty while a stall makes signals unknown.
			until(t, func(context.Context) (string, bool) {
				empty := unanswered(t, server, dashboard, span{from, time.Now(), values})
				return fmt.Sprint("queries without an answer: ", empty), len(empty) == 0
			})
		})
	}
}

// span is the time range and the values of Grafana's variables.
type span struct {
	from, to time.Time
	values   map[string]string
}

// unanswered runs each query of a dashboard, and returns those without a result.
func unanswered(t *testing.T, server *prometheus.Server, dashboard dashboards.Dashboard, at span) []string {
	t.Helper()
	var empty []string
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			expression := dashboards.Fill(target.Expression, at.values)
			_, may := mayBeEmpty()[panel.Title+"/"+target.LegendFormat]
			if !hasSamples(t, server, expression, target.Instant, at) && !may {
				empty = append(empty, panel.Title+": "+expression)
			}
		}
	}
	for _, annotation := range dashboard.Annotations.List {
		if !hasSamples(t, server, dashboards.Fill(annotation.Expression, at.values), false, at) {
			empty = append(empty, annotation.Name+": "+annotation.Expression)
		}
	}
	return empty
}

// hasSamples reports whether a query has a sample that a panel shows.
func hasSamples(t *testing.T, server *prometheus.Server, expression string, instant bool, at span) bool {
	t.Helper()
	if instant {
		vector, err := server.Query(t.Context(), expression)
		require.NoError(t, err)
		return len(vector) > 0
	}
	matrix, err := server.QueryRange(t.Context(), expression, at.from.Truncate(time.Second), at.to, chartStep)
	require.NoError(t, err)
	return slices.ContainsFunc(matrix, func(stream *model.SampleStream) bool {
		return slices.ContainsFunc(stream.Values, func(sample model.SamplePair) bool {
			return !math.IsNaN(float64(sample.Value)) // a rate of nothing, which no chart shows
		})
	})
}
