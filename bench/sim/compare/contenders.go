// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
)

// The names of the contenders.
const (
	Policy     = "pulsar-autoscaler"
	KEDA       = "keda"
	TunedKEDA  = "keda-tuned"
	CPU        = "hpa-cpu"
	FixedCount = "fixed"
	Recorded   = "recorded"
)

// peakUse is the utilization at the busiest time for which the fixed replicas are sized.
const peakUse = 0.8

// contender is one of the compared controllers.
type contender struct {
	name, setting string
	new           baseline.New
	// initial replicas; 0 for those that the load needs at its beginning.
	initial int
}

// contenders in the order of the table. Their settings derive from the expected values of the Function: like those of a
// user they do not change if its capacity turns out to be another.
func (c Config) contenders() []contender {
	threshold := math.Ceil(baseline.TunedThreshold(c.Capacity.Expected, c.objective()))
	fixed := c.fixed()
	all := []contender{
		{name: Policy, setting: "the policy", new: baseline.Limited(c.Spec, c.limitsAt)},
		{name: KEDA, setting: "msgBacklogThreshold 10, the default", new: baseline.DefaultKEDA},
		{
			name: TunedKEDA, setting: fmt.Sprintf("msgBacklogThreshold %.0f = capacity * objective / 2", threshold),
			new: baseline.KEDA(threshold, 0),
		},
		{name: CPU, setting: "average CPU utilization of 80%", new: baseline.CPU},
		{
			name: FixedCount, setting: strconv.Itoa(fixed) + " replicas, not scaled", new: baseline.Fixed(fixed),
			initial: fixed,
		},
	}
	if c.Load.HasReplicas() {
		all = append(all, contender{
			name: Recorded, setting: "the recorded replicas", new: baseline.Schedule(c.Load.Replicas),
		})
	}
	return all
}

// fixed replicas: as many as are configured, or as the highest rate needs.
func (c Config) fixed() int {
	if c.Fixed > 0 {
		return c.Fixed
	}
	return min(maxReplicas, max(1, int(math.Ceil(c.peak()/(peakUse*c.Capacity.Expected)))))
}
