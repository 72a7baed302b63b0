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

// functionName is the name of the Function and of its policy, and a part of its topic.
const functionName = "greeter"

// patience is how long after the step down replicas may take to return to one. Where replicas start slowly, as on a
// busy machine, a scale-down has to save more first.
const patience = 5 * time.Minute

// scenario is the course of a demo.
type scenario struct {
	// low and high are loads in messages per second: low, high, then low again.
	low, high  float64
	calm, busy time.Duration
	// tail is how long one replica is shown at the end.
	tail time.Duration
	// java replicas or light ones, their name in texts, and the time to process a message.
	java        bool
	replica     string
	serviceTime time.Duration
	// objective, maxReplicas and window (in whole seconds) are the policy's. 0 is its default window.
	objective, window time.Duration
	maxReplicas       int
	// sync is the HPA's period, and flags are the adapter's. Empty ones are shipped: 15 s, and polls every 10 s.
	sync  time.Duration
	flags []string
}

// full is sized for 2 cores: a replica of 20 ms per message processes 50/s, so that high needs 3 of them and more to
// drain the backlog, and starting one costs 2 CPU seconds and 160 MB. All settings are as shipped: replicas follow the
// load down after the stabilization window of 45 s. One replica handles low with any learned headroom, 15 % busy.
func full() scenario {
	return scenario{
		low: 5, high: 150, calm: 20 * time.Second, busy: 60 * time.Second,
		tail: 8 * time.Second, java: true, replica: "Java instance",
		serviceTime: 20 * time.Millisecond, objective: 30 * time.Second, maxReplicas: 8,
	}
}

// short has the same parts at shorter intervals than shipped, and replicas that start at once; three are enough.
func short() scenario {
	return scenario{
		low: 10, high: 80, calm: 5 * time.Second, busy: 15 * time.Second,
		tail: time.Second, replica: "consumer",
		serviceTime: 20 * time.Millisecond, objective: 30 * time.Second, window: 2 * time.Second, maxReplicas: 4,
		sync: 5 * time.Second, flags: []string{"--poll-interval=2s", "--rate-window=4s"},
	}
}

// fall is when the load steps down; it steps up after calm.
func (s scenario) fall() time.Duration { return s.calm + s.busy }

func (s scenario) load() load.Shape { return load.Step(s.low, s.high, s.calm, s.fall()) }

// over reports whether the demo is complete: for the tail after the fall, one replica is desired and running, and at
// most two seconds of arrivals are in the backlog; or patience has passed.
func (s scenario) over(samples []sample) bool {
	if len(samples) == 0 {
		return false
	}
	now := samples[len(samples)-1].Seconds
	if now >= (s.fall() + patience).Seconds() {
		return true
	}
	for i := len(samples) - 1; i >= 0; i-- {
		one := samples[i]
		if one.Seconds < s.fall().Seconds() || !one.isOne() || float64(one.backlog()) > 2*s.low {
			return false
		}
		if now-one.Seconds >= s.tail.Seconds() {
			return true
		}
	}
	return false
}

// manifest is the policy as a user writes it.
func (s scenario) manifest() string {
	manifest := fmt.Sprintf(`apiVersion: pulsar-autoscaler.io/v1alpha1
kind: AutoscalingPolicy
metadata: {name: %[1]s}
spec:
  scaleTargetRef: {apiVersion: compute.functionmesh.io/v1alpha1, kind: Function, name: %[1]s}
  minReplicas: 1
  maxReplicas: %[2]d
  latencyObjective: %[3]s
`, functionName, s.maxReplicas, s.objective)
	if s.window > 0 {
		manifest += fmt.Sprintf("  behavior: {scaleDown: {stabilizationWindowSeconds: %d}}\n", int(s.window.Seconds()))
	}
	return manifest
}

// differs are the intervals that are not the shipped ones.
func (s scenario) differs() (flags []string) {
	if s.sync > 0 {
		flags = append(flags, "kube-controller-manager --horizontal-pod-autoscaler-sync-period="+s.sync.String())
	}
	for _, flag := range s.flags {
		flags = append(flags, "adapter "+flag)
	}
	return flags
}

// policy decodes the manifest, so that the created object is the shown one.
func (s scenario) policy() (*v1alpha1.AutoscalingPolicy, error) {
	p := &v1alpha1.AutoscalingPolicy{}
	if err := yaml.UnmarshalStrict([]byte(s.manifest()), p); err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	p.Namespace = stage.Namespace
	return p, nil
}
