// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

const (
	// startSpread and warmUp are the defaults of Scenario.StartSpread and WarmUp.
	startSpread = 0.25
	warmUp      = 20
	// crashAfter is how long a crashing replica consumes before it ends with an error, in seconds.
	crashAfter = 20
	// firstBackOff and longestBackOff are how long the kubelet waits before it restarts a container, in seconds: not at
	// all after the first crash, then twice as long each time.
	//
	// Source: Kubernetes documentation, Pod Lifecycle, how Pods handle problems with containers.
	firstBackOff, longestBackOff = 10, 300
)

// replica is one replica from the scale write that requested it.
type replica struct {
	number int
	speed  float64
	queue  queue

	// unready is the second from which its pod is not ready, until ready: then its container runs, which is enough for
	// Kubernetes without a readiness probe. It consumes later.
	unready, ready, consumes int
	// crashes: it crashes repeatedly; it has ended so many times, and its next start waits until backOff.
	crashes        bool
	ended, backOff int

	received, processed, failed, busy float64
	// call is the rest of the current call, in messages of the mean length, and callTime its time so far in seconds; 0 for
	// no call.
	call, callTime float64

	// joined: it has its share of the hashes. moves are the consumers that had them, and blocked the share that waits for
	// those.
	joined  bool
	moves   []move
	blocked float64
}

// capacity of a warm replica, in messages per second.
func (r *replica) capacity(scenario *Scenario, second int) float64 {
	capacity := scenario.Capacity(float64(second)) * r.speed
	if scenario.Speed != nil {
		capacity *= scenario.Speed(r.number, second, second-r.consumes)
	}
	return capacity
}

// forget resets an instance's counters and current call: its container ended.
func (r *replica) forget() {
	r.received, r.processed, r.failed, r.busy, r.call, r.callTime = 0, 0, 0, 0, 0, 0
}

func (r *replica) warmth(second int, warmUp float64) float64 {
	return min(1, 0.5+0.5*float64(second-r.consumes)/warmUp)
}

// statefulSet has the replicas and their pods.
type statefulSet struct {
	scenario *Scenario
	random   *rand.Rand
	replicas []*replica
	// active are the replicas that consume, in order.
	active []*replica
	// outdated are those of an older revision, replaced from the end on.
	outdated []*replica
	started  int
	// updated is the second from which all pods are of the newest revision and ready.
	updated int
}

// start creates a replica that consumes after a start time.
func (s *statefulSet) start(second int) *replica {
	r := &replica{
		number: s.started, speed: math.Exp(s.scenario.Spread * s.random.NormFloat64()),
		crashes: s.random.Float64() < s.scenario.Crashing,
	}
	s.started++
	s.schedule(r, second)
	return r
}

// schedule starts a pod: it gets a node once possible, its container runs after half of a start time, and it consumes
// after the other half.
func (s *statefulSet) schedule(r *replica, second int) {
	from := second
	for _, span := range s.scenario.Pending {
		if from >= span.From && from < span.To {
			from = span.To
		}
	}
	took := s.startTime()
	r.backOff, r.unready = second, second
	r.ready, r.consumes = from+int(math.Ceil(took/2)), from+int(math.Ceil(took))
}

// startTime draws a time from a scale write to a replica that consumes, in seconds.
func (s *statefulSet) startTime() float64 {
	spread := s.scenario.StartSpread
	sigma := math.Sqrt(math.Log(1 + spread*spread))
	factor := math.Exp(sigma*s.random.NormFloat64() - sigma*sigma/2)
	return s.scenario.Start.Seconds() * factor
}

// connect updates which replicas are active.
func (s *statefulSet) connect(second int) {
	s.active = s.active[:0]
	for _, r := range s.replicas {
		if second >= r.consumes {
			s.active = append(s.active, r)
		}
	}
	s.join()
}

// failing replicas are those with a container that ends in this second.
func (s *statefulSet) failing(second int) []*replica {
	var failing []*replica
	for _, r := range s.replicas {
		if r.crashes && second >= r.consumes+crashAfter ||
			r.consumes == second && s.scenario.CrashingStarts.contain(second) {
			failing = append(failing, r)
		}
	}
	return failing
}

// crash ends a replica's container. Its pod stays, so the next start takes only the container's time.
func (s *statefulSet) crash(r *replica, second int) {
	wait := 0
	if r.ended > 0 {
		wait = int(min(longestBackOff, firstBackOff*math.Pow(2, float64(r.ended-1))))
	}
	r.ended++
	r.unready, r.backOff, r.ready = second, second+wait, second+wait
	r.consumes = r.ready + int(math.Ceil(s.startTime()/2))
	r.forget()
}

// nextOutdated takes the next pod to replace off the list, like a StatefulSet: the newest first, when all pods are
// ready. It is nil without any.
func (s *statefulSet) nextOutdated(second int) *replica {
	for len(s.outdated) > 0 {
		last := s.outdated[len(s.outdated)-1]
		removed := !slices.Contains(s.replicas, last)
		if !removed && slices.ContainsFunc(s.replicas, func(r *replica) bool { return second < r.ready }) {
			return nil
		}
		s.outdated = s.outdated[:len(s.outdated)-1]
		if !removed {
			return last
		}
	}
	return nil
}

// replace a replica's pod.
func (s *statefulSet) replace(r *replica, second int) {
	s.schedule(r, second)
	r.forget()
	s.updated = max(s.updated, r.ready)
}

// Pods are the replicas as Kubernetes shows them.
type Pods struct {
	// Unready ones do not run, more than policy.NotStartedShare of all since UnreadySince. CrashLooping ones of those wait
	// for a restart.
	Ready, Unready, CrashLooping int
	UnreadySince                 time.Time
	// Updating reports whether pods are being replaced.
	Updating bool
}

func (s *statefulSet) pods(second int) Pods {
	pods := Pods{Updating: len(s.outdated) > 0 || second < s.updated}
	var unready []int
	for _, r := range s.replicas {
		if second < r.ready {
			unready = append(unready, r.unready)
		}
		if second < r.backOff {
			pods.CrashLooping++
		}
	}
	pods.Ready, pods.Unready = len(s.replicas)-len(unready), len(unready)
	slices.Sort(unready)
	if few := int(policy.NotStartedShare * float64(len(s.replicas))); few < len(unready) {
		pods.UnreadySince = at(unready[few])
	}
	return pods
}
