// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/dashboards"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

var answersDir = flag.String("answers", "", "write what Prometheus answers to the dashboards' queries to this folder, "+
	"for bench/dashboards to draw")

// chartStep is the time between two points of a panel.
const chartStep = 2 * time.Second

// charts are the results of a dashboard's queries, in the form that bench/dashboards draws.
type charts struct {
	From        int64               `json:"from"`
	To          int64               `json:"to"`
	Step        float64             `json:"step"`
	Variables   map[string]string   `json:"variables"`
	Panels      map[int]panelAnswer `json:"panels"`
	Annotations []annotated         `json:"annotations"`
}

// panelAnswer has the results of a panel by refId.
type panelAnswer map[string][]answeredSeries

// answeredSeries has pairs of seconds and values.
type answeredSeries struct {
	Labels model.Metric `json:"labels"`
	Values [][2]float64 `json:"values"`
}

// annotated are the times of marks.
type annotated struct {
	Name  string    `json:"name"`
	Color string    `json:"color"`
	Times []float64 `json:"times"`
}

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
	rate.turn(6)
	awaitSample(t, f, "min_over_time(pulsar_autoscaler_policy_objective_met{"+labels+"}[5s])", is(1))
	awaitSample(t, f, "pulsar_autoscaler_policy_running_replicas{"+labels+"}",
		func(value float64) bool { return value <= 2 })

	found, err := dashboards.Read("../../deploy/monitoring/dashboards")
	require.NoError(t, err)
	to := time.Now()
	seconds := strconv.Itoa(int(to.Sub(from).Seconds()))
	values := map[string]string{
		"policy": name, "job": "pulsar-autoscaler",
		"__range": seconds + "s", "__interval": chartStep.String(), "__rate_interval": "10s",
	}
	for file, dashboard := range found {
		t.Run(file, func(t *testing.T) {
			values := maps.Clone(values)
			values["namespace"] = stage.Namespace
			asked, empty := askAll(t, server, dashboard, span{from, to, values})
			writeCharts(t, file, asked)
			require.Empty(t, empty, "queries without an answer")
		})
	}
}

// span is the time range and the values of Grafana's variables.
type span struct {
	from, to time.Time
	values   map[string]string
}

// askAll runs each query of a dashboard, and logs those without a result.
func askAll(t *testing.T, server *prometheus.Server, dashboard dashboards.Dashboard, at span,
) (all charts, empty []string) {
	t.Helper()
	all = charts{
		From: at.from.Unix(), To: at.to.Unix(), Step: chartStep.Seconds(), Variables: map[string]string{},
		Panels: map[int]panelAnswer{}, Annotations: []annotated{},
	}
	for _, variable := range dashboard.Templating.List {
		if value, known := at.values[variable.Name]; known {
			all.Variables[variable.Label] = value
		}
	}
	for _, panel := range dashboard.Panels {
		all.Panels[panel.ID] = panelAnswer{}
		for _, target := range panel.Targets {
			expression := dashboards.Fill(target.Expression, at.values)
			answer := evaluate(t, server, expression, target.Instant, at)
			if _, may := mayBeEmpty()[panel.Title+"/"+target.LegendFormat]; len(answer) == 0 && !may {
				empty = append(empty, panel.Title+": "+expression)
			}
			all.Panels[panel.ID][target.RefID] = answer
		}
	}
	for _, annotation := range dashboard.Annotations.List {
		marks := annotated{Name: annotation.Name, Color: annotation.IconColor, Times: []float64{}}
		for _, series := range evaluate(t, server, dashboards.Fill(annotation.Expression, at.values), false, at) {
			for _, sample := range series.Values {
				marks.Times = append(marks.Times, sample[0])
			}
		}
		if len(marks.Times) == 0 {
			empty = append(empty, annotation.Name+": "+annotation.Expression)
		}
		all.Annotations = append(all.Annotations, marks)
	}
	return all, empty
}

func evaluate(t *testing.T, server *prometheus.Server, expression string, instant bool, at span,
) []answeredSeries {
	t.Helper()
	var found []answeredSeries
	if instant {
		vector, err := server.Query(t.Context(), expression)
		require.NoError(t, err)
		for _, sample := range vector {
			pair := [2]float64{unix(sample.Timestamp), float64(sample.Value)}
			found = append(found, answeredSeries{sample.Metric, [][2]float64{pair}})
		}
		return found
	}
	matrix, err := server.QueryRange(t.Context(), expression, at.from.Truncate(time.Second), at.to, chartStep)
	require.NoError(t, err)
	for _, stream := range matrix {
		series := answeredSeries{Labels: stream.Metric}
		for _, sample := range stream.Values {
			if value := float64(sample.Value); value == value { // a rate of nothing is NaN, which no chart shows
				series.Values = append(series.Values, [2]float64{unix(sample.Timestamp), value})
			}
		}
		if len(series.Values) > 0 {
			found = append(found, series)
		}
	}
	return found
}

func unix(at model.Time) float64 { return float64(at.UnixNano()) / float64(time.Second) }

func writeCharts(t *testing.T, name string, all charts) {
	t.Helper()
	if *answersDir == "" {
		return
	}
	content, err := json.Marshal(all)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*answersDir, name+".json"), content, 0o600))
}
