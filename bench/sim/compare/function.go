// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/trace"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Range is a number with its bounds.
type Range struct {
	Low      float64 `json:"low"`
	Expected float64 `json:"expected"`
	High     float64 `json:"high"`
}

// Exactly is an exact number.
func Exactly(value float64) Range { return Range{value, value, value} }

// IsExact reports whether the bounds are the number itself.
func (r Range) IsExact() bool { return r.Low == r.High }

func (r Range) check(name string, least, most float64) error {
	if !(r.Low >= least && r.Low <= r.Expected && r.Expected <= r.High && r.High <= most) { // so that NaN fails too
		return fmt.Errorf("%s is %v to %v, expected %v: it must be from %v to %v", name, r.Low, r.High, r.Expected, least,
			most)
	}
	return nil
}

// Estimate is a Range with its source.
type Estimate struct {
	Range

	Source string `json:"source"`
}

// Config configures a comparison. Fixed, RecordedLate, CostPerReplicaHour and Seed may be 0.
type Config struct {
	Load trace.Load
	// Source of the load, for the report.
	Source string
	// Spec is that of the policy, with its defaults.
	Spec v1alpha1.AutoscalingPolicySpec
	// Capacity of a replica in messages per second, and Start: seconds from a scale write to a replica that consumes.
	Capacity, Start Estimate
	Subscription    backlog.SubscriptionType
	Partitions      int
	// CPUShare is the share of a busy replica's time that uses CPU, above 0 and at most 1.
	CPUShare float64
	// Fixed replicas of the contender that does not scale; 0 for as many as the busiest time needs.
	Fixed int
	// RecordedLate is the recorded share of the time with late messages; nil if unknown.
	RecordedLate *float64
	// CostPerReplicaHour in any currency; nil if unknown.
	CostPerReplicaHour *float64
	Seed               uint64
	// Notes are caveats about the data.
	Notes []string

	// limits are those of scheduled.
	limits []*v1alpha1.Limits
}

// The bounds of a Config.
const (
	maxCapacity   = 1e9
	maxStart      = time.Hour
	maxReplicas   = 10_000
	maxPartitions = 10_000
	maxCost       = 1e6
)

func (c Config) validate() error {
	if err := errors.Join(
		c.Capacity.check("the capacity of a replica", 1e-6, maxCapacity),
		c.Start.check("the start time of a replica in seconds", 0, maxStart.Seconds()),
		c.checkLoad(),
		c.checkCost(),
	); err != nil {
		return err
	}
	switch {
	case c.Spec.MaxReplicas < 1 || c.least() > int(c.Spec.MaxReplicas) || c.Spec.MaxReplicas > maxReplicas:
		return fmt.Errorf("the bounds are %d to %d replicas: the lower must not be larger, and the upper from 1 to %d",
			c.least(), c.Spec.MaxReplicas, maxReplicas)
	case c.Partitions < 1 || c.Partitions > maxPartitions:
		return fmt.Errorf("there are %d partitions: it must be from 1 to %d", c.Partitions, maxPartitions)
	case !(c.CPUShare > 0 && c.CPUShare <= 1):
		return fmt.Errorf("the CPU share is %v: it must be above 0 and at most 1", c.CPUShare)
	case c.Fixed < 0 || c.Fixed > maxReplicas:
		return fmt.Errorf("there are %d fixed replicas: it must be from 0 to %d", c.Fixed, maxReplicas)
	case c.Subscription != backlog.Shared && c.Subscription != backlog.KeyShared && c.Subscription != backlog.Failover:
		return fmt.Errorf("subscription type %q cannot be simulated: it must be Shared, Key_Shared or Failover",
			c.Subscription)
	}
	return nil
}

// complete validates the configuration, and evaluates the schedules of the policy.
func (c *Config) complete() (err error) {
	if err := c.validate(); err != nil {
		return err
	}
	c.limits, err = c.scheduled()
	return err
}

// checkLoad validates the load.
func (c Config) checkLoad() error {
	switch {
	case c.messages() < 1:
		return errors.New("the load has no messages: take a time in which the Function had work")
	case c.peak() > maxReplicas*c.Capacity.Expected:
		return fmt.Errorf("the load has up to %g messages/s, and one replica processes %g/s: it must need at most %d "+
			"replicas; check the units of the rates and of the capacity", c.peak(), c.Capacity.Expected, maxReplicas)
	}
	return nil
}

// checkCost validates the cost per replica and hour, if any.
func (c Config) checkCost() error {
	if cost := c.CostPerReplicaHour; cost != nil && !(*cost >= 0 && *cost <= maxCost) {
		return fmt.Errorf("the cost is %v a replica and hour: it must be from 0 to %g", *cost, maxCost)
	}
	return nil
}

func (c Config) least() int {
	if c.Spec.MinReplicas == nil {
		return 1
	}
	return int(*c.Spec.MinReplicas)
}

func (c Config) objective() time.Duration { return policy.LatencyObjective(c.Spec) }

// messages of the load.
func (c Config) messages() float64 {
	sum := 0.0
	for second := range c.Load.Seconds() {
		sum += c.Load.Rate(float64(second))
	}
	return sum
}

// peak is the highest rate of the load.
func (c Config) peak() float64 { return slices.Max(c.Load.Rates()) }
