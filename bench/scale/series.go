// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// The series of /metrics that are read. The last two are of level Full.
const (
	resident     = "process_resident_memory_bytes"
	cpuSeconds   = "process_cpu_seconds_total"
	nextGC       = "go_memstats_next_gc_bytes"
	gogc         = "go_gc_gogc_percent"
	apiRequests  = "rest_client_requests_total"
	statusWrites = "pulsar_autoscaler_policy_status_patches_total"
	reconciles   = "pulsar_autoscaler_policy_reconciles_total"
	pulsarReads  = "pulsar_autoscaler_source_requests_total"
	podReads     = "pulsar_autoscaler_instance_scrapes_total"
	readings     = "pulsar_autoscaler_policy_ready_messages"
	readingAge   = "pulsar_autoscaler_policy_reading_age_seconds"
	decisionAge  = "pulsar_autoscaler_policy_decision_age_seconds"
)

// scrape is what /metrics said at a time, in so many bytes.
type scrape struct {
	stage.Metrics

	at    time.Time
	bytes int
}

func newScrape(at time.Time, text []byte) scrape {
	return scrape{Metrics: stage.ReadMetrics(text), at: at, bytes: len(text)}
}

// liveHeap is what the last garbage collection left, in bytes: the next one begins when that has grown by GOGC percent.
func (s scrape) liveHeap() float64 {
	return s.Sum(nextGC) / (1 + s.Sum(gogc)/100)
}

// perSecond is the growth of a counter from the first scrape to the last.
func perSecond(scrapes []scrape, name string) float64 {
	first, last := scrapes[0], scrapes[len(scrapes)-1]
	return (last.Sum(name) - first.Sum(name)) / last.at.Sub(first.at).Seconds()
}

// largest is the highest value over the scrapes.
func largest(scrapes []scrape, value func(scrape) float64) (found float64) {
	for _, s := range scrapes {
		found = max(found, value(s))
	}
	return found
}

// age is the quantile of a series over all policies and scrapes; nil if too many policies have no sample.
func age(scrapes []scrape, name string, policies int, q float64) *float64 {
	var all []float64
	for _, s := range scrapes {
		all = append(all, s.Metrics[name]...)
	}
	slices.Sort(all)
	value, known := output.Quantile(all, policies*len(scrapes), q)
	if !known {
		return nil
	}
	return &value
}
