// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// flink is the autoscaler of the Flink Kubernetes operator. In its favour: replicas are added in place where Flink
// restarts the job, it evaluates every 15 s and not once a minute, it knows how many messages its lag is, and it uses
// the processing rate during a lag at once. As by default it does not detect ineffective scale-ups, so it needs no
// expected rate, which Flink computed from a parallelism before its limits (FLINK-39743).
//
// Source: flink-kubernetes-operator, module flink-autoscaler, ScalingMetricEvaluator and JobVertexScaler.
type flink struct {
	settings flinkSettings
	rates    rates
	seen     []observed
	quiet    int
	recent   baseline.Window
}

// flinkSettings are job.autoscaler options: times in seconds, utilisations as shares.
type flinkSettings struct {
	window, stable          int
	down, catchUp, restart  float64
	target, lowest, highest float64
}

// defaultFlink has the defaults, and tunedFlink suits replicas that start in half a minute.
func defaultFlink() flinkSettings {
	return flinkSettings{
		window: 900, stable: 300, down: 3600, catchUp: 1800, restart: 300, target: 0.7, lowest: 0.4, highest: 1,
	}
}

func tunedFlink() flinkSettings {
	return flinkSettings{
		window: 60, stable: 15, down: 300, catchUp: 120, restart: 25, target: 0.8, lowest: 0.6, highest: 0.9,
	}
}

func newFlink(settings flinkSettings) baseline.New {
	return func(model.Scenario) baseline.Controller {
		return &flink{settings: settings, recent: baseline.Window{Seconds: settings.down}}
	}
}

const (
	flinkInterval = 15
	// flinkLargestDown is the largest share of replicas that one scale-down removes.
	flinkLargestDown = 0.6
	// flinkSaturated is the backlog in seconds of work above which the processing rate is the capacity, and flinkBacklog
	// that of catching up, when no utilization is too low.
	flinkSaturated, flinkBacklog = 30, 300
)

func (f *flink) Replicas(system *model.System) int {
	current := system.Replicas()
	if current == 0 {
		return 1 // it never scales to zero
	}
	if !baseline.Every(flinkInterval, system) || system.Second() < f.quiet {
		return current
	}
	one, ok := f.rates.look(system)
	rough, err := system.Rough()
	if !ok || err != nil || rough.Consuming == 0 {
		return current
	}
	f.seen = append(f.seen, one)
	if len(f.seen) < f.settings.window/flinkInterval {
		return current
	}
	f.seen = f.seen[len(f.seen)-f.settings.window/flinkInterval:]
	want, ok := f.want(system, rough)
	if !ok {
		return current
	}
	want = f.recent.Held(float64(system.Second()), current, want)
	if want != current {
		f.quiet, f.seen = system.Second()+f.settings.stable, nil
	}
	return max(1, want)
}

// want returns the recommendation of the window: the current replicas while their utilization is within the bounds.
func (f *flink) want(system *model.System, rough model.Rough) (replicas int, ok bool) {
	mean, n := observed{}, float64(len(f.seen))
	for _, o := range f.seen {
		mean.arrivals += o.arrivals / n
		mean.processed += o.processed / n
		mean.busy += o.busy / n
	}
	if mean.busy <= 0 || mean.processed <= 0 {
		return 0, false
	}
	s := f.settings
	lag := rough.Entries * system.Scenario().Batch
	each := mean.processed / mean.busy // true processing rate of one
	if lag >= flinkSaturated*mean.processed {
		each = mean.processed / float64(rough.Consuming)
	}
	lowest, highest := s.lowest, s.highest
	if lag > flinkBacklog*mean.processed {
		lowest, highest = 0, 1
	}
	capacity := func(use, restart float64) float64 {
		if use == 0 {
			return math.Inf(1) // also without arrivals
		}
		return lag/s.catchUp + mean.arrivals*restart/s.catchUp + mean.arrivals/use
	}
	current := float64(system.Replicas())
	have := each * current
	if have >= capacity(highest, 0) && have <= capacity(lowest, s.restart) {
		return system.Replicas(), true
	}
	factor := math.Max(1-flinkLargestDown, capacity(s.target, s.restart)/have)
	return bound(math.Ceil(factor*current-1e-9), system.Scenario()), true
}
