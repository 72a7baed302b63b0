// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// span is a time with both its ends.
type span struct{ begun, ended time.Time }

// fall is what an outage did to the targets of a contender.
type fall struct {
	// OutageMinReplicas is the least spec.replicas of any target while the broker did not answer, and OutageHadReplicas
	// the least when that began. OutageFell of the OutageTargets were at 0 at some time of it.
	OutageMinReplicas *int `json:"outage_min_replicas"`
	OutageHadReplicas *int `json:"outage_had_replicas"`
	OutageFell        *int `json:"outage_fell"`
	OutageTargets     *int `json:"outage_targets"`
	// OutageFirstFallSeconds is until the first of them was.
	OutageFirstFallSeconds *float64 `json:"outage_first_fall_seconds"`
}

// newFall looks at the targets, of which there is at least one, over an outage.
func newFall(timelines [][]mesh.Sample, s span) fall {
	least, had, fell := math.MaxInt, math.MaxInt, 0
	var first *float64
	for _, timeline := range timelines {
		lived := testbed.Between(timeline, s.begun, s.ended)
		had = min(had, lived[0].Desired)
		for _, one := range lived {
			least = min(least, one.Desired)
		}
		if down := slices.IndexFunc(lived, func(one mesh.Sample) bool { return one.Desired == 0 }); down >= 0 {
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

// awakening is how long targets took to wake that had work at the same time.
type awakening struct {
	// BurstP50Seconds, BurstP99Seconds and BurstMaxSeconds are from when the messages were there until spec.replicas of
	// at least 1; null where fewer than that share of the targets woke.
	BurstP50Seconds *float64 `json:"burst_p50_seconds"`
	BurstP99Seconds *float64 `json:"burst_p99_seconds"`
	BurstMaxSeconds *float64 `json:"burst_max_seconds"`
	// BurstTargets is how many there were and BurstWoke how many woke within the time that was watched.
	BurstTargets *int `json:"burst_targets"`
	BurstWoke    *int `json:"burst_woke"`
	// BurstRightSized is how many of them woke at once at more than one replica, and BurstSetUpSeconds how long KEDA
	// took to have an autoscaler for each ScaledObject.
	BurstRightSized   *int     `json:"burst_right_sized"`
	BurstSetUpSeconds *float64 `json:"burst_set_up_seconds"`
}

// newAwakening sums up the waits of those that woke, of so many targets.
func newAwakening(waits []time.Duration, targets int) awakening {
	sorted := slices.Sorted(slices.Values(waits))
	return awakening{
		BurstP50Seconds: quantile(sorted, targets, 0.5), BurstP99Seconds: quantile(sorted, targets, 0.99),
		BurstMaxSeconds: quantile(sorted, targets, 1), BurstTargets: &targets, BurstWoke: new(len(waits)),
	}
}

// quantile of all targets, in seconds; nil when too few woke for it to be known.
func quantile(sorted []time.Duration, targets int, q float64) *float64 {
	wait, known := output.Quantile(sorted, targets, q)
	if !known {
		return nil
	}
	return new(wait.Seconds())
}
