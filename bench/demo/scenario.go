// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// functionName is that of the Function, of its policy, and a part of its topic.
const functionName = "greeter"

// scenario is what happens in a demo.
type scenario struct {
	// low and high are loads in messages per second: low for calm, high for busy, then low again.
	low, high  float64
	calm, busy time.Duration
	// patience is how long after the step down the replicas may take to be back at one, and tail how long that is
	// shown.
	patience, tail time.Duration
	// serviceTime of a message in a replica.
	serviceTime time.Duration
	// objective, maxReplicas and window (in whole seconds) are the policy's.
	objective, window time.Duration
	maxReplicas       int
}

// full is sized for 2 cores: a replica of 20 ms per message does 50/s, so that high needs 3 of them and more to work
// off what waits, and starting one costs 2 CPU seconds and 160 MB. Replicas follow a load down over minutes: 60 s of
// high bring what they follow, with a time constant of 90 s, half way up, and to where one is enough, 31/s with the
// room that such a step has just shown to be needed, it comes back within two.
func full() scenario {
	return scenario{
		low: 10, high: 150, calm: 20 * time.Second, busy: 60 * time.Second,
		patience: 3 * time.Minute, tail: 8 * time.Second,
		serviceTime: 20 * time.Millisecond, objective: 30 * time.Second, window: 15 * time.Second, maxReplicas: 8,
	}
}

// short has the same parts; three replicas are enough.
func short() scenario {
	return scenario{
		low: 10, high: 80, calm: 5 * time.Second, busy: 15 * time.Second,
		patience: 90 * time.Second, tail: time.Second,
		serviceTime: 20 * time.Millisecond, objective: 30 * time.Second, window: 2 * time.Second, maxReplicas: 4,
	}
}

// fall is when the load steps down, since the load began; up it steps after calm.
func (s scenario) fall() time.Duration { return s.calm + s.busy }

// profile is the load.
func (s scenario) profile() load.Profile {
	return func(elapsed time.Duration) float64 {
		if elapsed >= s.calm && elapsed < s.fall() {
			return s.high
		}
		return s.low
	}
}

// published is how many messages the profile makes in that time.
func (s scenario) published(elapsed time.Duration) float64 {
	busy := min(max(0, elapsed-s.calm), s.busy)
	return s.low*(elapsed-busy).Seconds() + s.high*busy.Seconds()
}

// over says whether there is nothing more to see: the load fell, and for the tail one replica is wanted and running and
// no more than two seconds of arrivals wait; or patience is at its end.
func (s scenario) over(samples []sample) bool {
	if len(samples) == 0 {
		return false
	}
	now := samples[len(samples)-1].at
	if now >= s.fall()+s.patience {
		return true
	}
	for i := len(samples) - 1; i >= 0; i-- {
		one := samples[i]
		if one.at < s.fall() || one.current != known(1) || one.running != 1 || float64(one.backlog()) > 2*s.low {
			return false
		}
		if now-one.at >= s.tail {
			return true
		}
	}
	return false
}

// manifest is the policy as its user writes it.
func (s scenario) manifest() string {
	return fmt.Sprintf(`apiVersion: pulsar-autoscaler.io/v1alpha1
kind: AutoscalingPolicy
metadata: {name: %[1]s}
spec:
  scaleTargetRef: {apiVersion: compute.functionmesh.io/v1alpha1, kind: Function, name: %[1]s}
  minReplicas: 1
  maxReplicas: %[2]d
  latencyObjective: %[3]s
  behavior:
    scaleDown: {stabilizationWindowSeconds: %[4]d}
`, functionName, s.maxReplicas, s.objective, int(s.window.Seconds()))
}

// policy is the manifest as an object: what is shown is what is created.
func (s scenario) policy() (*v1alpha1.AutoscalingPolicy, error) {
	p := &v1alpha1.AutoscalingPolicy{}
	if err := yaml.UnmarshalStrict([]byte(s.manifest()), p); err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	p.Namespace = stage.Namespace
	return p, nil
}
