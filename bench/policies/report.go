// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

const (
	// allHPAsGoal is the goal for the time until 300 policies created at once have their HorizontalPodAutoscalers.
	allHPAsGoal = 15 * time.Second
	// kedaAllHPAs is the time of KEDA 2.21.0 for 300 ScaledObjects at once, 2 HorizontalPodAutoscalers a second, on 2 CPUs
	// with its defaults: its client's limit of 20 requests a second and 5 parallel reconciles. It is a constant from one
	// earlier measurement.
	kedaAllHPAs = 150 * time.Second
	// refreshEvery is policy.refreshEvery, the interval at which changing signals are written.
	refreshEvery = time.Minute
	// writesPerScale is the number of status writes for a change of the number of replicas: one with the decision, and one
	// when the target has it.
	writesPerScale = 2
)

// report is the JSON output.
type report struct {
	Kubernetes string `json:"kubernetes"`
	CPUs       int    `json:"cpus"`
	Policies   int    `json:"policies"`
	// AllHPAsSeconds and FirstHPASeconds count from the creation of the first policy; CreatedSeconds is when the last was
	// created.
	CreatedSeconds     float64 `json:"created_seconds"`
	FirstHPASeconds    float64 `json:"first_hpa_seconds"`
	AllHPAsSeconds     float64 `json:"all_hpas_seconds"`
	AllHPAsGoalSeconds float64 `json:"all_hpas_goal_seconds"`
	KEDAAllHPAsSeconds float64 `json:"keda_all_hpas_seconds"`
	// Per second of the steady state: status writes of policies, their budget, and changes of spec.replicas of Functions.
	SteadySeconds               float64 `json:"steady_seconds"`
	StatusWritesPerSecond       float64 `json:"status_writes_per_second"`
	StatusWritesBudgetPerSecond float64 `json:"status_writes_budget_per_second"`
	ScalesPerSecond             float64 `json:"scales_per_second"`
}

// setSteady sets the numbers of the steady state.
//
// The budget: a status is written at every decision, and when signals moved by more than a tenth, once a minute.
// So n policies under a changing load may write n/60 s, and two statuses for every change of the number of replicas.
func (r *report) setSteady(elapsed time.Duration, writes, scales int) {
	r.SteadySeconds = elapsed.Seconds()
	r.StatusWritesPerSecond = float64(writes) / r.SteadySeconds
	r.ScalesPerSecond = float64(scales) / r.SteadySeconds
	r.StatusWritesBudgetPerSecond = float64(r.Policies)/refreshEvery.Seconds() + writesPerScale*r.ScalesPerSecond
}

func (r report) writeTable(out io.Writer) error {
	one := func(value float64) string { return output.Number(&value, 1) }
	whole := func(value float64) string { return output.Number(&value, 0) }
	title := fmt.Sprintf("%d policies at once on Kubernetes %s, everything on %d CPUs", r.Policies, r.Kubernetes, r.CPUs)
	return output.Table(out, title, [][]string{
		{"", "ours", "goal", "KEDA 2.21.0, 300"},
		{"first HorizontalPodAutoscaler after, s", one(r.FirstHPASeconds), "", ""},
		{
			"all HorizontalPodAutoscalers after, s", one(r.AllHPAsSeconds), whole(r.AllHPAsGoalSeconds),
			whole(r.KEDAAllHPAsSeconds),
		},
		{"status writes per second", one(r.StatusWritesPerSecond), one(r.StatusWritesBudgetPerSecond), ""},
		{"replica changes per second", one(r.ScalesPerSecond), "", ""},
	})
}
