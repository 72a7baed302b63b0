// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"slices"
	"time"
)

const (
	// crashAfter is how long a crashing replica consumes before it ends with an error.
	crashAfter = 20
	// firstBackOff and longestBackOff are how long the kubelet waits before it starts a container again, in seconds: not
	// at all after the first crash, then twice as long each time.
	//
	// Source: Kubernetes documentation, Pod Lifecycle, how Pods handle problems with containers.
	firstBackOff, longestBackOff = 10, 300
)

// replica is one replica from the scale write that asked for it.
type replica struct {
	number int
	speed  float64
	queue  fifo

	// unready is the second from which its pod is not ready, until ready: then its container runs, which without a
	// readiness probe is all that Kubernetes asks for. It consumes later.
	unready, ready, consumes int
	// crashes says that it ends again and again; it did so ended times, and its next start waits until the second backOff.
	crashes        bool
	ended, backOff int

	received, processed, failed, busy float64

	// joined says that it has its share of the hashes, moves where they were before, and blocked how many of them wait for
	// that, as a share of its own.
	joined  bool
	moves   []move
	blocked float64
}

func (r *replica) warmth(second int, warmUp float64) float64 {
	return min(1, 0.5+0.5*float64(second-r.consumes)/warmUp)
}

// Pods are what Kubernetes shows of the replicas.
type Pods struct {
	// Unready of them do not run, the oldest since UnreadySince; CrashLooping of those wait to be started again.
	Unready, CrashLooping int
	UnreadySince          time.Time
	// Updating says that pods are being replaced.
	Updating bool
}

// Pods as they are now.
func (w *System) Pods() Pods {
	pods := Pods{Updating: len(w.rolling) > 0 || w.second < w.updated}
	since := w.second
	for _, r := range w.replicas {
		if w.second < r.ready {
			pods.Unready++
			since = min(since, r.unready)
		}
		if w.second < r.backOff {
			pods.CrashLooping++
		}
	}
	if pods.Unready > 0 {
		pods.UnreadySince = at(since)
	}
	return pods
}

// begin starts a pod now: it is scheduled once that is possible, its container runs after half of a start time, and it
// consumes after the other half.
func (w *System) begin(r *replica) {
	from := w.second
	for _, span := range w.scenario.Pending {
		if from >= span.From && from < span.To {
			from = span.To
		}
	}
	took := w.startTime()
	r.backOff, r.unready, r.ready, r.consumes = w.second, w.second, from+int(math.Ceil(took/2)), from+int(math.Ceil(took))
}

// startTime draws a time from a scale write to a replica that consumes, in seconds.
func (w *System) startTime() float64 {
	spread := w.scenario.StartSpread
	sigma := math.Sqrt(math.Log(1 + spread*spread))
	factor := math.Exp(sigma*w.luck.NormFloat64() - sigma*sigma/2)
	return w.scenario.Start.Seconds() * factor
}

// crash ends a replica's container. Its pod stays, so that the next start takes only what a container needs to consume.
func (w *System) crash(r *replica) {
	w.returnMessages(r)
	wait := 0
	if r.ended > 0 {
		wait = int(min(longestBackOff, firstBackOff*math.Pow(2, float64(r.ended-1))))
	}
	r.ended++
	r.unready, r.backOff, r.ready = w.second, w.second+wait, w.second+wait
	r.consumes = r.ready + int(math.Ceil(w.startTime()/2))
	r.received, r.processed, r.failed, r.busy = 0, 0, 0, 0
}

// roll replaces the next pod of an older revision as a StatefulSet does: the newest first, when all pods are ready.
func (w *System) roll() {
	for len(w.rolling) > 0 {
		last := w.rolling[len(w.rolling)-1]
		if !slices.Contains(w.replicas, last) { // scaled away meanwhile
			w.rolling = w.rolling[:len(w.rolling)-1]
			continue
		}
		for _, r := range w.replicas {
			if w.second < r.ready {
				return
			}
		}
		w.rolling = w.rolling[:len(w.rolling)-1]
		w.restart(last)
		return
	}
}

// restart replaces a replica's pod.
func (w *System) restart(r *replica) {
	w.returnMessages(r)
	w.begin(r)
	r.received, r.processed, r.failed, r.busy = 0, 0, 0, 0
	w.updated = max(w.updated, r.ready)
}
