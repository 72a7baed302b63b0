// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// outcome is the data of a real run.
type outcome struct {
	scenario     scenario
	begun, ended time.Time
	looks        []look
	counts       []counted
	timeline     []pods.Sample
	timetable    timetable
	policy       *v1alpha1.AutoscalingPolicy
	published    int64
	done, late   int
	repeated     int
	// last is the broker's last response after all messages were processed; nil without one.
	last *backlog.TopicSample
}

// measured are measurements of a real run. Nil is unknown.
type measured struct {
	// StartSeconds is the mean time from a scale write to a replica that consumes, StartSpread its deviation over the
	// mean.
	StartSeconds *float64 `json:"start_seconds"`
	StartSpread  *float64 `json:"start_spread"`
	Starts       int      `json:"starts"`
	// CapacityPerReplica is the median of the messages per second that a busy replica processed in windows of five
	// seconds. CapacitySpread is the deviation of the logarithm of each replica's median, BusyAtSaturation the share of
	// that time in its metric.
	CapacityPerReplica *float64 `json:"capacity_per_replica"`
	CapacitySpread     *float64 `json:"capacity_spread"`
	BusyAtSaturation   *float64 `json:"busy_at_saturation"`
	Saturated          int      `json:"saturated_observations"`
	// CallSlack is the share by which calls of replicas that waited for messages took longer than those of other replicas:
	// medians over five seconds.
	CallSlack *float64 `json:"call_slack"`
	// WarmUpSpeed is the speed of a busy replica in about its first ten seconds, as a share of that after 20.
	WarmUpSpeed *float64 `json:"warm_up_speed"`
	// Redelivered messages went to more than one replica; Repeated ones were processed more than once.
	Redelivered *int64 `json:"redelivered"`
	Repeated    int    `json:"repeated"`
	// PrefetchedMax is the largest number of messages that one replica held.
	PrefetchedMax    *int64   `json:"prefetched_max"`
	MessagesPerEntry *float64 `json:"messages_per_entry"`
	// LearnedCapacity and LearnedBusy are what the policy had learned by the end.
	LearnedCapacity *float64 `json:"learned_capacity"`
	LearnedBusy     *float64 `json:"learned_busy"`
	// LoadLagSeconds is how far publishing fell behind the planned load, at most: the machine was busy. LoadAverage is the
	// machine's, over the run.
	LoadLagSeconds *float64 `json:"load_lag_seconds"`
	LoadAverage    *float64 `json:"load_average"`
	LoadAverageMax *float64 `json:"load_average_max"`
	// Timetable of the run, as far as it is known.
	Timetable timetable `json:"timetable"`
}

func (o outcome) measure() measured {
	var m measured
	m.starts(o.timeline, o.begun)
	m.saturation(o.looks)
	m.slack(o.looks)
	m.Repeated, m.Timetable = o.repeated, o.timetable
	if o.last != nil && int64(o.done) == o.published {
		delivered := int64(0)
		for _, s := range subscriptions(o.last) {
			delivered += s.DeliveredMessages
		}
		m.Redelivered = known(max(0, delivered-int64(o.done)))
	}
	if o.last != nil {
		messages, entries := int64(0), int64(0)
		for _, p := range o.last.Partitions {
			if p.AddedEntries != nil {
				messages, entries = messages+p.PublishedMessages, entries+*p.AddedEntries
			}
		}
		if entries > 0 {
			m.MessagesPerEntry = known(float64(messages) / float64(entries))
		}
	}
	if o.policy != nil && o.policy.Status.Capacity != nil {
		c := o.policy.Status.Capacity
		m.LearnedCapacity = known(c.MessagesPerSecond.AsApproximateFloat64())
		if c.MeasuredBusyPercent != nil {
			m.LearnedBusy = known(float64(*c.MeasuredBusyPercent) / 100)
		}
	}
	m.LoadLagSeconds = lag(o.scenario, o.counts)
	var loads []float64
	for _, l := range o.looks {
		if l.load != nil {
			loads = append(loads, *l.load)
		}
	}
	if len(loads) > 0 {
		mean, _ := moments(loads)
		m.LoadAverage, m.LoadAverageMax = known(mean), known(slices.Max(loads))
	}
	return m
}

// lag returns how far publishing was behind the planned load, at most, in seconds; nil without counts.
func lag(s scenario, counts []counted) *float64 {
	if len(counts) == 0 {
		return nil
	}
	owed, elapsed, worst, rate := 0.0, 0, 0.0, s.rate()
	for _, c := range counts {
		for ; elapsed < int(c.at.Milliseconds()); elapsed++ {
			owed += rate(float64(elapsed)/1000) / 1000
		}
		if now := rate(c.at.Seconds()); now > 0 {
			worst = max(worst, (owed-float64(c.published))/now)
		}
	}
	return &worst
}

func known[T any](value T) *T { return &value }

func subscriptions(sample *backlog.TopicSample) []backlog.SubscriptionSample {
	var all []backlog.SubscriptionSample
	for _, p := range sample.Partitions {
		all = append(all, p.Subscriptions...)
	}
	return all
}

// starts matches every replica that began to consume with the scale write that requested it, the oldest first.
func (m *measured) starts(timeline []pods.Sample, begun time.Time) {
	var asked []time.Time
	var took []float64
	var before pods.Sample
	for _, now := range timeline {
		for range now.Desired - before.Desired {
			asked = append(asked, now.Time)
		}
		asked = asked[:max(0, len(asked)-max(0, before.Desired-now.Desired))] // the newest are removed first
		for range now.Ready - before.Ready {
			if len(asked) == 0 {
				break // a restarted replica
			}
			if asked[0].After(begun) {
				took = append(took, now.Time.Sub(asked[0]).Seconds())
			}
			asked = asked[1:]
		}
		before = now
	}
	m.Starts = len(took)
	if len(took) == 0 {
		return
	}
	mean, deviation := moments(took)
	m.StartSeconds = known(mean)
	if len(took) > 1 {
		m.StartSpread = known(deviation / mean)
	}
}

const (
	// young is the age up to which a replica warms up, and grown that from which it has warmed up.
	young, grown = 10 * time.Second, 20 * time.Second
	// spareHeld is how many messages more than it processes a busy replica must hold: they include processed messages that
	// are not acknowledged.
	spareHeld = 10
)

// saturation finds the throughput of replicas that held more messages than they could process until the next sample.
func (m *measured) saturation(looks []look) {
	byPod := map[string][]float64{}
	var rates, shares, early []float64
	seen := map[string]time.Duration{}
	for i, now := range looks {
		m.prefetched(now)
		for pod, after := range now.instances {
			if _, known := seen[pod]; !known {
				seen[pod] = now.at
			}
			if i == 0 {
				continue
			}
			last := looks[i-1]
			before, there := last.instances[pod]
			calls := after.calls - before.calls
			if !there || calls <= 0 || !enough(last, after.consumer, calls) {
				continue
			}
			elapsed := (now.at - last.at).Seconds()
			rate := float64(calls) / elapsed
			switch age := (last.at+now.at)/2 - seen[pod]; {
			case age >= grown || seen[pod] == looks[0].at:
				rates, byPod[pod] = append(rates, rate), append(byPod[pod], rate)
				shares = append(shares, (after.busy-before.busy).Seconds()/elapsed)
			case age < young:
				early = append(early, rate)
			}
		}
	}
	m.Saturated = len(rates)
	if len(rates) == 0 {
		return
	}
	m.CapacityPerReplica, m.BusyAtSaturation = known(median(rates)), known(median(shares))
	if len(early) > 0 {
		m.WarmUpSpeed = known(median(early) / median(rates))
	}
	if len(byPod) > 1 {
		var logs []float64
		for _, of := range byPod {
			logs = append(logs, math.Log(median(of)))
		}
		_, deviation := moments(logs)
		m.CapacitySpread = known(deviation)
	}
}

// enough reports whether a consumer held more messages than the calls that it made.
func enough(l look, consumer string, calls int64) bool {
	return held(l)[consumer] >= calls+calls/20+spareHeld
}

func (m *measured) prefetched(l look) {
	for _, messages := range held(l) {
		if m.PrefetchedMax == nil || messages > *m.PrefetchedMax {
			m.PrefetchedMax = known(messages)
		}
	}
}

// held are the unacknowledged messages of each consumer, over all partitions.
func held(l look) map[string]int64 {
	all := map[string]int64{}
	if l.topic == nil {
		return all
	}
	for _, s := range subscriptions(l.topic) {
		for _, c := range s.Consumers {
			all[c.ID] += c.UnackedMessages
		}
	}
	return all
}

// moments are mean and standard deviation, of at least one value.
func moments(values []float64) (mean, deviation float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return mean, 0
	}
	for _, v := range values {
		deviation += (v - mean) * (v - mean) / float64(len(values)-1)
	}
	return mean, math.Sqrt(deviation)
}

func median[T cmp.Ordered](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
