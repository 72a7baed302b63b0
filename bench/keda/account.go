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

// account is how replicas followed one wave of load. What is nil did not come about.
type account struct {
	// FirstReplicaSeconds is from the first message to spec.replicas of at least 1, EnoughReplicasSeconds to as many as
	// the load needs.
	FirstReplicaSeconds   *float64 `json:"first_replica_seconds"`
	EnoughReplicasSeconds *float64 `json:"enough_replicas_seconds"`
	// FirstConsumingSeconds and EnoughConsumingSeconds are to as many that consume.
	FirstConsumingSeconds  *float64 `json:"first_consuming_seconds"`
	EnoughConsumingSeconds *float64 `json:"enough_consuming_seconds"`
	// LatePct of the messages took longer than the objective, or were not done at the end.
	LatePct *float64 `json:"late_pct"`
	// ReplicaSeconds are of replicas that were asked for and had not ended, from the first message to the end of the
	// wave.
	ReplicaSeconds *float64 `json:"replica_seconds"`
	// ReplicaChanges is how often spec.replicas changed, and MostReplicas its largest value.
	ReplicaChanges *int `json:"replica_changes"`
	MostReplicas   *int `json:"most_replicas"`
	// BrokerRequests and BrokerBytes are what the broker's admin service was asked, and answered.
	BrokerRequests *int64 `json:"broker_requests"`
	BrokerBytes    *int64 `json:"broker_bytes"`
}

// span is a time with both its ends.
type span struct{ begun, ended time.Time }

// follow fills in what the timeline of the target says about a wave for which so many replicas are enough.
func (a *account) follow(timeline []mesh.Sample, s span, enough int) {
	lived := testbed.Between(timeline, s.begun, s.ended)
	desired := func(one mesh.Sample) int { return one.Desired }
	ready := func(one mesh.Sample) int { return one.Ready }
	a.FirstReplicaSeconds, a.EnoughReplicasSeconds = until(lived, 1, desired), until(lived, enough, desired)
	a.FirstConsumingSeconds, a.EnoughConsumingSeconds = until(lived, 1, ready), until(lived, enough, ready)
	usage := testbed.UsageOf(lived, s.ended)
	a.ReplicaSeconds, a.ReplicaChanges, a.MostReplicas = new(usage.Paid.Seconds()), &usage.Changes, &usage.Most
}

// until is the time from the first sample to the first with at least so many; nil when there is none.
func until(lived []mesh.Sample, least int, count func(mesh.Sample) int) *float64 {
	for _, one := range lived {
		if count(one) >= least {
			return new(one.Time.Sub(lived[0].Time).Seconds())
		}
	}
	return nil
}

// tally is what had become of a topic's messages at a time.
type tally struct{ published, done, late int64 }

// latePct of the messages between two tallies: those that were late, and those that are not done. Nil when there
// were none.
func latePct(before, after tally) *float64 {
	published := after.published - before.published
	if published <= 0 {
		return nil
	}
	undone := max(0, published-(after.done-before.done))
	return new(100 * float64(after.late-before.late+undone) / float64(published))
}

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
