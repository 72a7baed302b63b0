// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// usualObjective is the CRD's default.
const usualObjective = time.Minute

// scenario is one load on one Function, real and simulated.
type scenario struct {
	name   string
	length time.Duration
	// objective is that of the policy and of the score.
	objective time.Duration
	// shape of the load, with its times multiplied by scale.
	shape func(scale float64) load.Shape
	scale float64
	// kind of the replicas, the cost of a message, and the delay before a replica starts.
	kind                    stage.Kind
	serviceTime, startDelay time.Duration
	maxReplicas             int
	partitions              int
	batching                load.Batching
}

// longest bounds the length of a scenario, in seconds.
const longest = 3600

// all returns all scenarios. A replica processes 50 messages a second. Light replicas start after the delay of a real
// pod, which pulls an image and starts a JVM. Java replicas start as fast as this machine starts a JVM; it can run six.
// Messages of the surge are late on purpose: its objective is as short as a start.
func all() []scenario {
	return []scenario{
		{
			name: "step", scale: 1, length: 8 * time.Minute, objective: usualObjective, shape: step(40, 240, 120, 330),
			kind: stage.Light, serviceTime: 20 * time.Millisecond, startDelay: 20 * time.Second, maxReplicas: 20,
		},
		{
			name: "wave", scale: 1, length: 8 * time.Minute, objective: usualObjective, shape: wave(40, 300, 240),
			kind: stage.Light, serviceTime: 20 * time.Millisecond, startDelay: 20 * time.Second, maxReplicas: 20,
			partitions: 3, batching: load.BatchingOn,
		},
		{
			name: "java", scale: 1, length: 7 * time.Minute, objective: usualObjective, shape: step(20, 120, 100, 290),
			kind: stage.Java, serviceTime: 20 * time.Millisecond, maxReplicas: 6,
		},
		{
			name: "surge", scale: 1, length: 5 * time.Minute, objective: 20 * time.Second, shape: step(40, 300, 100, 220),
			kind: stage.Light, serviceTime: 20 * time.Millisecond, startDelay: 20 * time.Second, maxReplicas: 20,
		},
	}
}

func find(name string) (scenario, bool) {
	for _, s := range all() {
		if s.name == name {
			return s, true
		}
	}
	return scenario{}, false
}

func names(scenarios []scenario) []string {
	var all []string
	for _, s := range scenarios {
		all = append(all, s.name)
	}
	return all
}

// step is low, high from second up on, and low again from second down on.
func step(low, high, up, down float64) func(scale float64) load.Shape {
	return func(scale float64) load.Shape { return load.Step(low, high, after(up*scale), after(down*scale)) }
}

// wave rises from low to high and falls back within each period of that many seconds.
func wave(low, high, period float64) func(scale float64) load.Shape {
	return func(scale float64) load.Shape { return load.Wave(low, high, after(period*scale)) }
}

// after is a time in seconds.
func after(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// lasting returns the scenario with its load, and the delay before a replica starts, scaled to another length.
func (s scenario) lasting(length time.Duration) scenario {
	share := length.Seconds() / s.length.Seconds()
	s.scale *= share
	s.startDelay = after(s.startDelay.Seconds() * share)
	s.length = length
	return s
}

// seconds is the length of the scenario.
func (s scenario) seconds() int { return int(s.length.Seconds()) }

// rate is the load in messages per second, over seconds since the start.
func (s scenario) rate() model.Curve {
	schedule, _ := s.shape(s.scale).Schedule(nil) // all of them are valid
	return func(second float64) float64 { return schedule.Rate(after(second)) }
}

// function configures the Function of the real run.
func (s scenario) function() stage.FunctionConfig {
	return stage.FunctionConfig{
		Name: s.name, Kind: s.kind, ServiceTime: s.serviceTime, StartDelay: s.startDelay, Objective: s.objective,
		Partitions: s.partitions, Batching: s.batching,
	}
}

// policy has only bounds and the objective.
func (s scenario) policy() *v1alpha1.AutoscalingPolicy {
	return stage.NewPolicy(s.name, 1, int32(s.maxReplicas), s.objective) //nolint:gosec // small
}
