// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// allHPAsGoal is the goal for the time until 300 policies created at once have their HorizontalPodAutoscalers.
const allHPAsGoal = 15 * time.Second

// report is the JSON output.
type report struct {
	Kubernetes string `json:"kubernetes"`
	CPUs       int    `json:"cpus"`
	// Policies of each contender.
	Policies           int               `json:"policies"`
	AllHPAsGoalSeconds float64           `json:"all_hpas_goal_seconds"`
	Contenders         map[string]result `json:"contenders"`
}

// result of one contender.
type result struct {
	Setting string `json:"setting"`
	// AllHPAsSeconds and FirstHPASeconds count from the creation of the first object, and are null without HPAs;
	// CreatedSeconds is when the last was created.
	CreatedSeconds  float64  `json:"created_seconds"`
	FirstHPASeconds *float64 `json:"first_hpa_seconds"`
	AllHPAsSeconds  *float64 `json:"all_hpas_seconds"`
	// Watched topics are those that brokers watch before the messages, AdapterRSSMB the adapter's resident memory then,
	// and PublishedSeconds the time until all messages were published.
	Watched          int     `json:"watched"`
	AdapterRSSMB     float64 `json:"adapter_rss_mb"`
	PublishedSeconds float64 `json:"published_seconds"`
	wakes
}

// wakes are how long Functions that got messages at the same moment took to wake.
type wakes struct {
	// Woken Functions had a replica before the timeout, and RightSized of them more than one at once.
	Woken      int `json:"woken"`
	RightSized int `json:"right_sized"`
	// WokenP50Seconds, WokenP99Seconds and WokenMaxSeconds count from the publication of the messages until spec.replicas
	// was at least 1; null if fewer than that share of all Functions woke.
	WokenP50Seconds *float64 `json:"woken_p50_seconds"`
	WokenP99Seconds *float64 `json:"woken_p99_seconds"`
	WokenMaxSeconds *float64 `json:"woken_max_seconds"`
}

func (r report) writeTable(out io.Writer) error {
	const decimals = 2
	rows := [][]string{
		{""},
		{"first HorizontalPodAutoscaler after, s"},
		{"all HorizontalPodAutoscalers after, s"},
		{"Functions woken by messages"},
		{"first replica after p50, s"},
		{"p99, s"},
		{"max, s"},
		{"woken to more than one replica"},
		{"until all are published, s"},
		{"topics that brokers watch"},
		{"memory of the adapter, MB"},
	}
	settings := ""
	for _, name := range all() {
		c, measured := r.Contenders[name]
		if !measured {
			continue
		}
		settings += name + ": " + c.Setting + "\n"
		for i, cell := range []string{
			name, output.Number(c.FirstHPASeconds, 1), output.Number(c.AllHPAsSeconds, 1), output.Whole(&c.Woken),
			output.Number(c.WokenP50Seconds, decimals), output.Number(c.WokenP99Seconds, decimals),
			output.Number(c.WokenMaxSeconds, decimals), output.Whole(&c.RightSized),
			output.Number(&c.PublishedSeconds, decimals), output.Whole(&c.Watched), output.Number(&c.AdapterRSSMB, 1),
		} {
			rows[i] = append(rows[i], cell)
		}
	}
	title := fmt.Sprintf("%d autoscalers at once on Kubernetes %s, everything on %d CPUs; the goal of policies is %.0f s",
		r.Policies, r.Kubernetes, r.CPUs, r.AllHPAsGoalSeconds)
	if err := output.Table(out, title, rows); err != nil {
		return err
	}
	output.Printf(out, "%s", settings)
	return nil
}

// The series of the adapter that are read.
const (
	watched  = "pulsar_autoscaler_readers"
	resident = "process_resident_memory_bytes"
)

const mb = 1e6
