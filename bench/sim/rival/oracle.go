// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// oracle knows the future arrivals, the capacity, downstream limits, every message of the backlog and the replicas that
// crash. It uses replicas to 95 % and drains excess backlog within the objective. It is a reference, not the optimum:
// it makes changes that restart all replicas, and drains late messages as fast as others.
type oracle struct {
	scenario model.Scenario
	recent   baseline.Window
}

func newOracle(s model.Scenario) baseline.Controller {
	return &oracle{scenario: s, recent: baseline.Window{Seconds: oracleHold}}
}

const (
	oracleLook    = 40
	oracleSmooth  = 30
	oracleUse     = 0.95
	oracleHold    = 60
	oracleSeconds = 5
)

func (o *oracle) Replicas(system *model.System) int {
	if !baseline.Every(oracleSeconds, system) {
		return system.Replicas()
	}
	s := o.scenario
	second, start := float64(system.Second()), s.Start.Seconds()
	capacity := system.Capacity(second)
	need := 0.0
	for ahead := 0.0; ahead <= start+oracleLook; ahead += oracleSmooth / 3 {
		need = math.Max(need, o.mean(second+ahead)/(oracleUse*system.Capacity(second+ahead)))
		if s.Type == backlog.Failover {
			need = math.Max(need, o.partitions(second+ahead))
		}
	}
	now := o.mean(second)
	extra := math.Max(0, system.Processable()-now*math.Min(5, s.Objective.Seconds()/4))
	need = math.Max(need, (now+extra/s.Objective.Seconds())/capacity)
	if s.Downstream != nil {
		need = math.Min(need, math.Ceil(s.Downstream(second)/(oracleUse*capacity)))
	}
	if s.Type == backlog.Failover {
		need = math.Min(need, float64(s.Partitions))
	}
	replicas := bound(math.Ceil(need-1e-9)+float64(system.Crashing()), s)
	return o.recent.Held(second, system.Replicas(), replicas)
}

// mean rate around a second.
func (o *oracle) mean(second float64) float64 {
	sum := 0.0
	for _, offset := range []float64{-oracleSmooth / 2, 0, oracleSmooth / 2} {
		sum += math.Max(0, o.scenario.Due(math.Max(0, second+offset)))
	}
	mean := sum / 3
	if o.scenario.HotKey != nil { // replicas beyond one do not help with a hot key
		mean -= math.Max(0, mean*o.scenario.HotKey(second)-oracleUse*o.scenario.Capacity(second))
	}
	return mean
}

// partitions is the least number of replicas at which none is overloaded, if possible: a partition that overloads one
// replica does so at any number, and needs no more than a replica of its own.
func (o *oracle) partitions(second float64) float64 {
	s := o.scenario
	sum, hottest := 0.0, 0.0
	for _, weight := range s.Weights {
		sum, hottest = sum+weight, math.Max(hottest, weight)
	}
	rate := o.mean(second)
	most := math.Max(oracleUse*s.Capacity(second), hottest/sum*rate) + 1e-9
	for n := 1; n < s.Partitions; n++ {
		busiest := 0.0
		for i := range n {
			load := 0.0
			for p := i; p < s.Partitions; p += n {
				load += s.Weights[p] / sum * rate
			}
			busiest = math.Max(busiest, load)
		}
		if busiest <= most {
			return float64(n)
		}
	}
	return float64(s.Partitions)
}
