// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// span is a period.
type span struct{ begun, ended time.Time }

// fall is the effect of an outage on the targets of a contender.
type fall struct {
	// OutageMinReplicas is the lowest spec.replicas of any target during the outage, and OutageHadReplicas the lowest at
	// its start. OutageFell of the OutageTargets were at 0 during the outage.
	OutageMinReplicas *int `json:"outage_min_replicas"`
	OutageHadReplicas *int `json:"outage_had_replicas"`
	OutageFell        *int `json:"outage_fell"`
	OutageTargets     *int `json:"outage_targets"`
	// OutageFirstFallSeconds is the time until the first of them was at 0.
	OutageFirstFallSeconds *float64 `json:"outage_first_fall_seconds"`
}

// newFall evaluates at least one target over an outage.
func newFall(timelines [][]pods.Sample, s span) fall {
	least, had, fell := math.MaxInt, math.MaxInt, 0
	var first *float64
	for _, timeline := range timelines {
		lived := testbed.Between(timeline, s.begun, s.ended)
		had = min(had, lived[0].Desired)
		for _, one := range lived {
			least = min(least, one.Desired)
		}
		if down := slices.IndexFunc(lived, func(one pods.Sample) bool { return one.Desired == 0 }); down >= 0 {
			fell++
			if at := lived[down].Time.Sub(s.begun).Seconds(); first == nil || at < *first {
				first = &at
			}
		}
	}
	return fall{
		OutageMinReplicas: &least, OutageHadReplicas: &had, OutageFell: &fell, OutageTargets: new(len(timelines)),
		OutageFirstFallSeconds: first,
	}
}

// awakening is how long targets that got work at the same time took to wake.
type awakening struct {
	// BurstP50Seconds, BurstP99Seconds and BurstMaxSeconds count from the publication of the messages until spec.replicas
	// was at least 1; null if fewer than that share of the targets woke.
	BurstP50Seconds *float64 `json:"burst_p50_seconds"`
	BurstP99Seconds *float64 `json:"burst_p99_seconds"`
	BurstMaxSeconds *float64 `json:"burst_max_seconds"`
	// BurstTargets is the number of targets, and BurstWoke how many of them woke before the timeout.
	BurstTargets *int `json:"burst_targets"`
	BurstWoke    *int `json:"burst_woke"`
	// BurstRightSized is how many of them woke to more than one replica at once, and BurstSetUpSeconds how long KEDA took
	// to create an autoscaler for each ScaledObject.
	BurstRightSized   *int     `json:"burst_right_sized"`
	BurstSetUpSeconds *float64 `json:"burst_set_up_seconds"`
}

// newAwakening sums up the waits of the targets that woke.
func newAwakening(waits []time.Duration, targets int) awakening {
	sorted := slices.Sorted(slices.Values(waits))
	return awakening{
		BurstP50Seconds: quantile(sorted, targets, 0.5), BurstP99Seconds: quantile(sorted, targets, 0.99),
		BurstMaxSeconds: quantile(sorted, targets, 1), BurstTargets: &targets, BurstWoke: new(len(waits)),
	}
}

// quantile is that of all targets, in seconds; nil if too few woke.
func quantile(sorted []time.Duration, targets int, q float64) *float64 {
	wait, known := output.Quantile(sorted, targets, q)
	if !known {
		return nil
	}
	return new(wait.Seconds())
}
