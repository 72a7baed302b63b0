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
	// allHPAsGoal is how long 300 policies that come at once may wait for the last HorizontalPodAutoscaler.
	allHPAsGoal = 15 * time.Second
	// kedaAllHPAs is what KEDA 2.21.0 took for 300 ScaledObjects at once, 2 HorizontalPodAutoscalers a second, on 2
	// CPUs with its defaults: its client's limit of 20 requests a second and 5 reconciles at once. Measured once, not
	// here.
	kedaAllHPAs = 150 * time.Second
	// refreshEvery is policy.refreshEvery: signals that keep moving are written that often.
	refreshEvery = 30 * time.Second
	// writesPerScale are the statuses that a change of the number of replicas is good for: one when it is decided, and
	// one when the target has it.
	writesPerScale = 2
)

// report is what is written as JSON.
type report struct {
	Kubernetes string `json:"kubernetes"`
	CPUs       int    `json:"cpus"`
	Policies   int    `json:"policies"`
	// AllHPAsSeconds and FirstHPASeconds are from the creation of the first policy; CreatedSeconds is when the last was
	// created.
	CreatedSeconds     float64 `json:"created_seconds"`
	FirstHPASeconds    float64 `json:"first_hpa_seconds"`
	AllHPAsSeconds     float64 `json:"all_hpas_seconds"`
	AllHPAsGoalSeconds float64 `json:"all_hpas_goal_seconds"`
	KEDAAllHPAsSeconds float64 `json:"keda_all_hpas_seconds"`
	// In the steady state, per second: statuses of policies written, their budget, and changes of spec.replicas of
	// Functions.
	SteadySeconds               float64 `json:"steady_seconds"`
	StatusWritesPerSecond       float64 `json:"status_writes_per_second"`
	StatusWritesBudgetPerSecond float64 `json:"status_writes_budget_per_second"`
	ScalesPerSecond             float64 `json:"scales_per_second"`
}

// setSteady fills in the numbers of the steady state.
//
// The budget: a status is written when signals moved by more than a tenth, but not more often than every 30 s, and at
// every decision. So n policies under a load that never rests may write n/30 s, and two statuses for every change of
// the number of replicas.
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
		{"until the first HorizontalPodAutoscaler, s", one(r.FirstHPASeconds), "", ""},
		{"until all have theirs, s", one(r.AllHPAsSeconds), whole(r.AllHPAsGoalSeconds), whole(r.KEDAAllHPAsSeconds)},
		{"statuses written a second", one(r.StatusWritesPerSecond), one(r.StatusWritesBudgetPerSecond), ""},
		{"changes of replicas a second", one(r.ScalesPerSecond), "", ""},
	})
}
