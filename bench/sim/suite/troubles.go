// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// pathologies are backlogs that more replicas do not reduce, or less than expected.
func pathologies() []Scenario {
	// Downstream serves 250 a second and no more, while 400 arrive.
	limited := base("ratelimit", 2*hour, steps(map[int]float64{0: 100, 20 * minute: 400, 80 * minute: 100}))
	limited.Downstream = model.Constant(250)
	// Downstream slows down for each call: here more replicas do help.
	slow := base("slowdep", hour, model.Constant(200))
	slow.Capacity = steps(map[int]float64{0: 50, 20 * minute: 20, 45 * minute: 50})
	// Messages that always fail, each retried after a minute: they stay in the backlog, and keep replicas busy.
	poison := base("poison", hour, model.Constant(100))
	poison.Poison = 0.002
	// Each replica holds 500 messages, as in a window function: more replicas, more backlog.
	held := base("held-unacked", hour, model.Constant(100))
	held.Held = 500
	// A temporary downstream limit: replicas have to scale down to it, and up again.
	capDrop := base("cap-drop", 2*hour, model.Constant(300))
	capDrop.Downstream = steps(map[int]float64{0: 1e6, 30 * minute: 200, 70 * minute: 1e6})
	// Half of the messages have a delivery delay of 30 minutes: until then they are backlog, and no work.
	delayed := base("delayed", 2*hour, model.Constant(100))
	delayed.Delayed, delayed.Delay = 0.5, minutes(30)
	// Delayed messages that arrive at zero replicas: the broker does not count them as delayed without a consumer.
	asleep := base("delayed-at-zero", 2*hour, pulses(0, 100, 2*minute, 40*minute))
	asleep.Min, asleep.Initial, asleep.Delayed, asleep.Delay = 0, 0, 1, minutes(15)
	// Three entries that no function ever receives stay in the backlog: it is never zero.
	markers := base("marker-never-zero", 2*hour, pulses(0, 100, 5*minute, 40*minute))
	markers.Min, markers.Initial, markers.Markers = 0, 0, 3
	// Entries that no function receives, from the start: a pool that was never saturated has to see that it is idle.
	stuck := base("stuck-backlog", 2*hour, model.Constant(20))
	stuck.Markers = 40_000
	fewer := base("stuck-backlog-4000", 2*hour, model.Constant(20))
	fewer.Markers = 4_000
	// One message of each replica is held for ever, so the oldest message is always older than the objective.
	old := base("stuck-message", 2*hour, sine(200, 100, 40*minute))
	old.Held = 1
	// Downstream is down for 20 minutes: 9 of 10 messages throw, and are redelivered each minute, before new ones. More
	// replicas only throw more often; afterwards, a backlog of 20 minutes is real work.
	failing := base("failing", 2*hour, model.Constant(100))
	failing.Initial, failing.Failing = 3, steps(map[int]float64{0: 0, 20 * minute: 0.9, 40 * minute: 0})
	return []Scenario{
		{Scenario: limited},
		{Scenario: slow},
		{Scenario: poison},
		{Scenario: held},
		{Scenario: capDrop},
		{Scenario: delayed},
		{Scenario: failing},
		{Scenario: stuck},
		{Scenario: fewer},
		{Scenario: old},
		{Scenario: asleep},
		{Scenario: markers},
	}
}

// subscriptions have types that determine which replica gets which messages.
func subscriptions() []Scenario {
	// Failover on 12 partitions, the first with three times the mean: the busiest replica counts.
	skew := base("failover-skew", hour, steps(map[int]float64{0: 50, 10 * minute: 300}))
	skew.Type, skew.Partitions = backlog.Failover, 12
	for i := range 12 {
		skew.Weights = append(skew.Weights, math.Pow(float64(i+1), -0.6))
	}
	// Key_Shared with a varying load: a new replica's keys wait until the others have processed their messages of them.
	keys := base("key-shared-churn", hour, sine(200, 150, 20*minute))
	keys.Type = backlog.KeyShared
	// For 10 minutes a third of all messages have one key, twice the capacity of the one replica that gets them.
	hot := base("hot-key", hour, model.Constant(300))
	hot.Type, hot.HotKey = backlog.KeyShared, steps(map[int]float64{0: 0, 20 * minute: 0.33, 30 * minute: 0})
	// Half a second a message and receive queues of 200: the keys that a new replica takes wait for up to 100 s.
	slow := base("key-shared-slow", 2*hour, sine(12, 8, 40*minute))
	slow.Type, slow.Capacity, slow.ReceiveQueue, slow.Objective, slow.Initial = backlog.KeyShared, model.Constant(
		2), 200, minutes(2), 6
	return []Scenario{{Scenario: skew}, {Scenario: keys}, {Scenario: hot}, {Scenario: slow}}
}

// faults of Pulsar, the controller and Kubernetes.
func faults() []Scenario {
	// Pulsar does not respond for 10 minutes, in which the load triples.
	outage := base("outage", hour, steps(map[int]float64{0: 100, 25 * minute: 300}))
	outage.Outages = model.Spans{{From: 20 * minute, To: 30 * minute}}
	// Responses without some of the partitions look like half the backlog.
	partial := base("partial-partitions", hour, sine(200, 150, 30*minute))
	partial.Partitions, partial.Partial = 4, model.Spans{
		{From: 15 * minute, To: 18 * minute},
		{From: 40 * minute, To: 43 * minute},
	}
	// Topics move between brokers each 5 minutes: counters restart at 0.
	resets := base("counter-reset", hour, sine(200, 100, 30*minute))
	for at := 5 * minute; at < hour; at += 5 * minute {
		resets.Resets = append(resets.Resets, at)
	}
	// The controller restarts with its status.
	restarts := base("adapter-restart", hour, sine(200, 150, 30*minute))
	restarts.Restarts = []int{10 * minute, 20 * minute, 22 * minute, 40 * minute}
	// Each change of the number replaces all pods, one after the other.
	onScale := base("restarts-on-scale", hour, sine(200, 150, 30*minute))
	onScale.RestartsOnScale = true
	// No room in the cluster for 8 minutes after a step, and 2 before it, in which only an oracle would scale up: more
	// pending replicas do not help.
	pending := base("pods-pending", hour, change(50, 400, 50))
	pending.Pending = model.Spans{{From: 8 * minute, To: 18 * minute}}
	// The same for 25 minutes after the step, while the backlog grows and raises the recommendation each minute: pending
	// replicas cost replica-seconds, and all of them start at once at the end.
	full := base("pods-pending-long", 90*minute, steps(map[int]float64{0: 150, 10 * minute: 400, 60 * minute: 150}))
	full.Initial, full.Pending = 4, model.Spans{{From: 8 * minute, To: 35 * minute}}
	// Each new replica ends before it consumes, for 20 minutes after a step, while running ones continue: one more does
	// not help until the image, or the quota, is fixed, and the kubelet retries up to 5 minutes later.
	crashAll := base("crash-all", 90*minute, steps(map[int]float64{0: 150, 10 * minute: 300, 60 * minute: 150}))
	crashAll.Initial, crashAll.CrashingStarts = 4, model.Spans{{From: 8 * minute, To: 30 * minute}}
	// Three of ten replicas crash repeatedly.
	crash := base("crash-loop", hour, model.Constant(200))
	crash.Crashing = 0.3
	var all []Scenario
	for _, s := range []model.Scenario{
		outage, partial, resets, restarts, onScale, pending, full, crashAll, crash,
	} {
		all = append(all, Scenario{Scenario: s})
	}
	return all
}
