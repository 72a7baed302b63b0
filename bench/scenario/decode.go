// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
)

// maxBytes of a scenario: a recorded load is a separate file.
const maxBytes = 1 << 20

// Open reads a file with a scenario, and what it names: a recorded load and a payload, which are beside it.
func Open(path string) (Scenario, load.Schedule, error) {
	fail := func(err error) (Scenario, load.Schedule, error) {
		return Scenario{}, load.Schedule{}, fmt.Errorf("reading scenario %s: %w", path, err)
	}
	file, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	s, err := Decode(file)
	if err != nil {
		return fail(err)
	}
	files := os.DirFS(filepath.Dir(path))
	schedule, err := s.Load.Schedule(files)
	if err == nil {
		err = s.checkOutage(schedule.End())
	}
	if err == nil {
		s.Messages, err = s.Messages.Open(files)
	}
	if err != nil {
		return fail(err)
	}
	return s, schedule, nil
}

// Decode reads a scenario and sets its defaults. It does not open recordings.
func Decode(from io.Reader) (Scenario, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxBytes+1))
	if err != nil {
		return Scenario{}, fmt.Errorf("reading the scenario: %w", err)
	}
	if len(text) > maxBytes {
		return Scenario{}, errors.New("the scenario is larger than 1 MiB: put a recorded load into a separate CSV file")
	}
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return Scenario{}, fmt.Errorf("decoding the scenario: %w", err)
	}
	var s Scenario
	var values any
	err = json.Unmarshal(object, &values)
	if err == nil {
		err = errors.Join(mistakes("", values, reflect.TypeFor[Scenario](), "")...)
	}
	if err == nil {
		err = json.Unmarshal(object, &s)
	}
	if err != nil {
		return Scenario{}, fmt.Errorf("decoding the scenario, see docs/bench.md for its keys: %w", err)
	}
	s.setDefaults()
	return s, s.validate()
}

func (s *Scenario) setDefaults() {
	const replicas = 10
	s.Pulsar.Namespace = cmp.Or(s.Pulsar.Namespace, "public/default")
	s.Messages = s.Messages.WithDefaults()
	s.LatencyObjective.Duration = cmp.Or(s.LatencyObjective.Duration, time.Minute)
	s.MaxReplicas = cmp.Or(s.MaxReplicas, replicas)
	if s.MinReplicas == nil {
		s.MinReplicas = new(int32(1))
	}
	s.Order = cmp.Or(s.Order, InTurn)
	s.WatchAfter.Duration = cmp.Or(s.WatchAfter.Duration, time.Minute)
	s.CooldownPeriod.Duration = cmp.Or(s.CooldownPeriod.Duration, 5*time.Minute)
	s.Function.Kind = cmp.Or(s.Function.Kind, KindFunction)
	s.Function.Stages = cmp.Or(s.Function.Stages, 1)
	s.Function.ClassName = cmp.Or(s.Function.ClassName, "pulsarautoscaler.WorkFunction")
	s.Function.Jar = cmp.Or(s.Function.Jar, "/pulsar/example-functions-1.jar")
	s.Function.CPU = cmp.Or(s.Function.CPU, "200m")
	s.Function.Memory = cmp.Or(s.Function.Memory, "256Mi")
	s.Local.HPASyncPeriod.Duration = cmp.Or(s.Local.HPASyncPeriod.Duration, 15*time.Second)
	for i := range s.Contenders {
		s.Contenders[i].setDefaults()
	}
}

func (c *Contender) setDefaults() {
	const threshold, percentage = 10, 80
	if c.Policy != nil {
		c.Policy.Actuator = cmp.Or(c.Policy.Actuator, ActuatorHPA)
	}
	if c.KEDAPulsar != nil {
		c.KEDAPulsar.Threshold = cmp.Or(c.KEDAPulsar.Threshold, threshold)
	}
	if c.CPU != nil {
		c.CPU.Percentage = cmp.Or(c.CPU.Percentage, percentage)
	}
}

// Objective is the latency objective of all stages together.
func (s Scenario) Objective() time.Duration {
	return time.Duration(s.Function.Stages) * s.LatencyObjective.Duration
}

// NeedsKEDA reports whether KEDA scales a contender.
func (s Scenario) NeedsKEDA() bool {
	for _, c := range s.Contenders {
		if c.KEDAPulsar != nil || c.Policy != nil && c.Policy.Actuator == ActuatorKEDA {
			return true
		}
	}
	return false
}

// Reached returns the addresses at which Functions and autoscalers reach Pulsar.
func (p Pulsar) Reached() Addresses {
	return Addresses{
		AdminURL:   cmp.Or(p.InCluster.AdminURL, p.AdminURL),
		ServiceURL: cmp.Or(p.InCluster.ServiceURL, p.ServiceURL),
	}
}
