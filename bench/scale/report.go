// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// row is what one number of policies costs.
type row struct {
	Policies int `json:"policies"`
	Pods     int `json:"pods"`
	// Direct are the policies that the controller writes replicas for, at the end of the steady state.
	Direct int `json:"direct"`
	// RSSMB is the highest resident memory of the steady state, PeakRSSMB since the start, and LiveHeapMB what garbage
	// collections leave at most; 1 MB is 1,000,000 bytes.
	RSSMB      float64 `json:"rss_mb"`
	PeakRSSMB  float64 `json:"peak_rss_mb"`
	LiveHeapMB float64 `json:"live_heap_mb"`
	CPUCores   float64 `json:"cpu_cores"`
	// Ages over all policies; null if too many have none.
	ReadingAgeP50Seconds  *float64 `json:"reading_age_p50_s"`
	ReadingAgeP99Seconds  *float64 `json:"reading_age_p99_s"`
	DecisionAgeP50Seconds *float64 `json:"decision_age_p50_s"`
	DecisionAgeP99Seconds *float64 `json:"decision_age_p99_s"`
	// AllKnownSeconds is the time from the start of the process to a reading of every policy, and FailoverSeconds from
	// the kill of the leader.
	AllKnownSeconds float64 `json:"all_known_s"`
	FailoverSeconds float64 `json:"failover_s"`
	// A second of the steady state.
	StatusWritesPerSecond   float64 `json:"status_writes_per_s"`
	APIRequestsPerSecond    float64 `json:"api_requests_per_s"`
	ReconcilesPerSecond     float64 `json:"reconciles_per_s"`
	PulsarRequestsPerSecond float64 `json:"pulsar_requests_per_s"`
	PodRequestsPerSecond    float64 `json:"pod_requests_per_s"`
	// ScrapeMB is the size of /metrics.
	ScrapeMB      float64 `json:"scrape_mb"`
	SteadySeconds float64 `json:"steady_s"`
	// Burst policies had twice the load at once. The times are from a decision to spec.replicas, and from the load to
	// spec.replicas; null if too many did not follow.
	Burst           int      `json:"burst,omitempty"`
	BurstP50Seconds *float64 `json:"burst_p50_s,omitempty"`
	BurstP99Seconds *float64 `json:"burst_p99_s,omitempty"`
	BurstMaxSeconds *float64 `json:"burst_max_s,omitempty"`

	BurstLoadP50Seconds *float64 `json:"burst_load_p50_s,omitempty"`
	BurstLoadP99Seconds *float64 `json:"burst_load_p99_s,omitempty"`
}

const mb = 1e6

// setSteady sets the numbers of the steady state from at least two scrapes.
func (r *row) setSteady(start, steady []scrape) {
	memory := func(s scrape) float64 { return s.Sum(resident) / mb }
	r.RSSMB = largest(steady, memory)
	r.PeakRSSMB = max(r.RSSMB, largest(start, memory))
	r.LiveHeapMB = largest(steady, scrape.liveHeap) / mb
	r.CPUCores = perSecond(steady, cpuSeconds)
	r.StatusWritesPerSecond = perSecond(steady, statusWrites)
	r.APIRequestsPerSecond = perSecond(steady, apiRequests)
	r.ReconcilesPerSecond = perSecond(steady, reconciles)
	r.PulsarRequestsPerSecond = perSecond(steady, pulsarReads)
	r.PodRequestsPerSecond = perSecond(steady, podReads)
	r.ScrapeMB = largest(steady, func(s scrape) float64 { return float64(s.bytes) }) / mb
	r.SteadySeconds = steady[len(steady)-1].at.Sub(steady[0].at).Seconds()
}

// setAges sets the ages from scrapes of level Full.
func (r *row) setAges(scrapes []scrape) {
	const median, rare = 0.5, 0.99
	r.ReadingAgeP50Seconds = age(scrapes, readingAge, r.Policies, median)
	r.ReadingAgeP99Seconds = age(scrapes, readingAge, r.Policies, rare)
	r.DecisionAgeP50Seconds = age(scrapes, decisionAge, r.Policies, median)
	r.DecisionAgeP99Seconds = age(scrapes, decisionAge, r.Policies, rare)
}

// report is the JSON output.
type report struct {
	Kubernetes string `json:"kubernetes"`
	CPUs       int    `json:"cpus"`
	// Flags of the adapter beside the shipped ones.
	Flags string `json:"flags,omitempty"`
	Rows  []row  `json:"rows"`
}

func (r report) writeTable(out io.Writer) error {
	number := func(value float64, decimals int) string { return output.Number(&value, decimals) }
	cells := [][]string{{
		"policies", "pods", "direct", "RSS MB", "peak", "live heap", "cores", "reading age p50, p99 s",
		"decision age p50, p99 s", "all known s", "fail-over s", "statuses/s", "API requests/s", "reconciles/s",
		"Pulsar requests/s", "pod requests/s", "burst p50, p99, max s", "from the load p50, p99 s",
	}}
	for _, one := range r.Rows {
		cells = append(cells, []string{
			fmt.Sprint(one.Policies), fmt.Sprint(one.Pods), fmt.Sprint(one.Direct), number(one.RSSMB, 0),
			number(one.PeakRSSMB, 0), number(one.LiveHeapMB, 0), number(one.CPUCores, 3),
			output.Number(one.ReadingAgeP50Seconds, 1) + ", " + output.Number(one.ReadingAgeP99Seconds, 1),
			output.Number(one.DecisionAgeP50Seconds, 1) + ", " + output.Number(one.DecisionAgeP99Seconds, 1),
			number(one.AllKnownSeconds, 0), number(one.FailoverSeconds, 0), number(one.StatusWritesPerSecond, 1),
			number(one.APIRequestsPerSecond, 1), number(one.ReconcilesPerSecond, 0), number(one.PulsarRequestsPerSecond, 0),
			number(one.PodRequestsPerSecond, 0), output.Number(one.BurstP50Seconds, 1) + ", " +
				output.Number(one.BurstP99Seconds, 1) + ", " + output.Number(one.BurstMaxSeconds, 1),
			output.Number(one.BurstLoadP50Seconds, 1) + ", " + output.Number(one.BurstLoadP99Seconds, 1),
		})
	}
	title := fmt.Sprintf("the adapter on Kubernetes %s, everything on %d CPUs", r.Kubernetes, r.CPUs)
	return output.Table(out, title, cells)
}
