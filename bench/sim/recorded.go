// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
)

// recorded is the set of the one load of a trace.
func (o options) recorded() (set, error) {
	file, err := os.Open(o.trace)
	if err != nil {
		return set{}, fmt.Errorf("-trace: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read
	load, err := trace.Read(file, o.function.gap)
	if err != nil {
		return set{}, fmt.Errorf("reading trace %s: %w", o.trace, err)
	}
	name := strings.TrimSuffix(filepath.Base(o.trace), filepath.Ext(o.trace))
	one := o.function.scenario(name, load.Seconds(), load.Rate)
	return set{name: "trace", scenarios: []suite.Scenario{one}}, nil
}

// scenario of a recorded load. It begins with as many replicas as its first rate needs.
func (f function) scenario(name string, seconds int, rate model.Curve) suite.Scenario {
	initial := math.Ceil(rate(0) / f.capacity)
	return suite.Scenario{Scenario: model.Scenario{
		Name: name, Seconds: seconds, Rate: rate, Capacity: model.Constant(f.capacity),
		Objective: f.objective, Start: f.start,
		Initial: int(min(float64(f.max), max(float64(f.min), initial))), Min: f.min, Max: f.max,
		Partitions: f.partitions, Type: f.subscription,
	}}
}
