// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// pathologies are backlogs with which more replicas do not help, or not as much as it looks.
func pathologies() []Scenario {
	// What the Function calls gives 250 a second and no more, where 400 arrive.
	limited := base("ratelimit", 2*hour, steps(map[int]float64{0: 100, 20 * minute: 400, 80 * minute: 100}))
	limited.Downstream = model.Constant(250)
	// What it calls becomes slower for each call: here more replicas do help.
	slow := base("slowdep", hour, model.Constant(200))
	slow.Capacity = steps(map[int]float64{0: 50, 20 * minute: 20, 45 * minute: 50})
	// Messages that fail for ever, each tried again after a minute: they stay in the backlog, and keep replicas busy.
	poison := base("poison", hour, model.Constant(100))
	poison.Poison = 0.002
	// Each replica holds 500 messages, as in a window function: more replicas, more backlog.
	held := base("held-unacked", hour, model.Constant(100))
	held.Held = 500
	// A limit downstream that comes and goes: replicas have to go down to what it gives, and up again.
	capDrop := base("cap-drop", 2*hour, model.Constant(300))
	capDrop.Downstream = steps(map[int]float64{0: 1e6, 30 * minute: 200, 70 * minute: 1e6})
	// Half of the messages are to be delivered 30 minutes later: until then they are backlog, and no work.
	delayed := base("delayed", 2*hour, model.Constant(100))
	delayed.Delayed, delayed.Delay = 0.5, minutes(30)
	// Delayed messages that arrive while nothing runs: the broker does not know them as delayed until there
	// is a consumer.
	asleep := base("delayed-at-zero", 2*hour, pulses(0, 100, 2*minute, 40*minute))
	asleep.Min, asleep.Initial, asleep.Delayed, asleep.Delay = 0, 0, 1, minutes(15)
	// Three entries that no function ever sees stay in the backlog: it never says zero.
	markers := base("marker-never-zero", 2*hour, pulses(0, 100, 5*minute, 40*minute))
	markers.Min, markers.Initial, markers.Markers = 0, 0, 3
	// What it calls is down for 20 minutes: 9 of 10 messages throw, and come again each minute, before all that are
	// new. More replicas only throw more often; once it is back, a backlog of 20 minutes is real work.
	failing := base("failing", 2*hour, model.Constant(100))
	failing.Initial, failing.Failing = 3, steps(map[int]float64{0: 0, 20 * minute: 0.9, 40 * minute: 0})
	pathology := func(s model.Scenario) Scenario { return Scenario{Scenario: s, Pathology: true} }
	return []Scenario{
		pathology(limited),
		{Scenario: slow},
		pathology(poison),
		pathology(held),
		pathology(capDrop),
		pathology(delayed),
		pathology(failing),
		{Scenario: asleep},
		{Scenario: markers},
	}
}

// subscriptions have types that say which replica gets which messages.
func subscriptions() []Scenario {
	// Failover on 12 partitions, the first with three times the mean: the busiest replica counts.
	skew := base("failover-skew", hour, steps(map[int]float64{0: 50, 10 * minute: 300}))
	skew.Type, skew.Partitions = backlog.Failover, 12
	for i := range 12 {
		skew.Weights = append(skew.Weights, math.Pow(float64(i+1), -0.6))
	}
	// Key_Shared with a load that comes and goes: a new replica's keys wait until the others have done what they hold
	// of them.
	keys := base("key-shared-churn", hour, sine(200, 150, 20*minute))
	keys.Type = backlog.KeyShared
	// For 10 minutes a third of all messages have one key, twice what the one replica that gets them does.
	hot := base("hot-key", hour, model.Constant(300))
	hot.Type, hot.HotKey = backlog.KeyShared, steps(map[int]float64{0: 0, 20 * minute: 0.33, 30 * minute: 0})
	// Half a second a message and receive queues of 200: the keys that a new replica takes wait for up to 100 s.
	slow := base("key-shared-slow", 2*hour, sine(12, 8, 40*minute))
	slow.Type, slow.Capacity, slow.ReceiveQueue, slow.Objective, slow.Initial = backlog.KeyShared, model.Constant(
		2), 200, minutes(2), 6
	return []Scenario{{Scenario: skew}, {Scenario: keys}, {Scenario: hot}, {Scenario: slow}}
}

// faults are of Pulsar, of the controller and of Kubernetes.
func faults() []Scenario {
	// Pulsar says nothing for 10 minutes, in which the load triples.
	outage := base("outage", hour, steps(map[int]float64{0: 100, 25 * minute: 300}))
	outage.Outages = model.Spans{{From: 20 * minute, To: 30 * minute}}
	// Answers without some of the partitions look like half the backlog.
	partial := base("partial-partitions", hour, sine(200, 150, 30*minute))
	partial.Partitions, partial.Partial = 4, model.Spans{
		{From: 15 * minute, To: 18 * minute},
		{From: 40 * minute, To: 43 * minute},
	}
	// Topics move between brokers each 5 minutes: counters start again at 0.
	resets := base("counter-reset", hour, sine(200, 100, 30*minute))
	for at := 5 * minute; at < hour; at += 5 * minute {
		resets.Resets = append(resets.Resets, at)
	}
	// The controller starts anew with what it wrote down.
	restarts := base("adapter-restart", hour, sine(200, 150, 30*minute))
	restarts.Restarts = []int{10 * minute, 20 * minute, 22 * minute, 40 * minute}
	// Each change of the number has all pods replaced, one after the other.
	onScale := base("restarts-on-scale", hour, sine(200, 150, 30*minute))
	onScale.RestartsOnScale = true
	// No room in the cluster for 8 minutes after a step, nor 2 before it, where only an oracle would have asked: more
	// of what does not start does not help.
	pending := base("pods-pending", hour, change(50, 400, 50))
	pending.Pending = model.Spans{{From: 8 * minute, To: 18 * minute}}
	// The same for 25 minutes after the step, while what waits grows and asks for more each minute: what was asked for
	// and waits for a node is paid for in replica-seconds, and all of it starts at once at the end.
	full := base("pods-pending-long", 90*minute, steps(map[int]float64{0: 150, 10 * minute: 400, 60 * minute: 150}))
	full.Initial, full.Pending = 4, model.Spans{{From: 8 * minute, To: 35 * minute}}
	// Each new replica ends before it consumes, for 20 minutes after a step, and those that run go on: one more is of
	// no use until the image, or the quota, is repaired, and the kubelet tries again up to 5 minutes later.
	crashAll := base("crash-all", 90*minute, steps(map[int]float64{0: 150, 10 * minute: 300, 60 * minute: 150}))
	crashAll.Initial, crashAll.CrashingStarts = 4, model.Spans{{From: 8 * minute, To: 30 * minute}}
	// Three of ten replicas crash again and again.
	crash := base("crash-loop", hour, model.Constant(200))
	crash.Crashing = 0.3
	var all []Scenario
	for _, s := range []model.Scenario{outage, partial, resets, restarts, onScale, pending, full, crashAll, crash} {
		all = append(all, Scenario{Scenario: s})
	}
	return all
}
