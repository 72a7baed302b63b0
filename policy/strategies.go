// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// evaluate returns the largest recommendation of the policy's strategies; the first of equals wins.
func evaluate(in Input, state State) recommendation {
	var winner recommendation
	for i, strategy := range strategies(in.Spec) {
		one := evaluateStrategy(strategy, in, state)
		steady, needed := max(one.steady, winner.steady), max(one.needed, winner.needed)
		foresees := one.foresees || winner.foresees
		if i == 0 || one.replicas > winner.replicas {
			winner = one
		}
		winner.steady, winner.needed, winner.foresees = steady, needed, foresees
	}
	return winner
}

// evaluateStrategy returns the recommendation of one strategy, within partitions and below a ceiling.
func evaluateStrategy(strategy v1alpha1.Strategy, in Input, state State) recommendation {
	var a recommendation
	switch strategy.Type {
	case v1alpha1.StrategyBacklogPerReplica:
		a = backlogPerReplica(in, strategy.BacklogPerReplica.Messages)
	case v1alpha1.StrategyRatePerReplica:
		a = ratePerReplica(in, state, strategy.RatePerReplica.MessagesPerSecond.AsApproximateFloat64())
	case v1alpha1.StrategyUtilization:
		a = utilization(in, state, float64(strategy.Utilization.TargetPercent)/percent)
	case v1alpha1.StrategyCapacity:
		a = capacity(in, state)
	default:
		a = holdCurrent(in, Hold{HoldUnknown, fmt.Sprintf("strategy %s is not known to this version", strategy.Type)})
	}
	a.strategy = strategy.Type
	a = a.withinPartitions(in)
	if respectsCeiling(strategy.Type) && state.Capacity != nil && !a.unknown {
		a = state.Plateau.limit(a, state.Decided.or(in.CurrentReplicas))
	}
	return a
}

// limit keeps a recommendation below the ceiling. During a verification replicas may grow for arrivals only.
func (p Plateau) limit(a recommendation, kept int32) recommendation {
	more, ceiling := a.replicas > kept, p.Ceiling()
	unverified, ineffective := Hold{Reason: HoldUnverified}, Hold{Reason: HoldIneffective}
	if p.Stage == Verifying && more {
		most := kept
		if !p.Doubtful {
			most = max(most, min(a.replicas, max(a.steady, unverifiedGrowth*p.Replicas)))
		}
		if a.replicas > most {
			a.replicas, unverified.Message = most, "it is unknown yet whether the last replicas added process more"
		}
	}
	if ceiling > 0 {
		if a.replicas > ceiling {
			a.replicas, ineffective.Message = ceiling, fmt.Sprintf(
				"more than %d replicas process no more than %s/s: look at what the Function waits for", ceiling,
				short(p.Reference.Processed))
		}
		a.steady, a.needed = min(a.steady, ceiling), min(a.needed, ceiling)
	}
	switch {
	case more:
		a.tried = a.tried.try(unverified, ineffective)
	case ineffective.Message != "":
		a.tried = a.tried.try(ineffective)
	}
	return a
}

// respectsCeiling reports whether a ceiling limits a strategy. RatePerReplica has no ceiling: it follows only the
// publish rate, by the user's number.
func respectsCeiling(strategy v1alpha1.StrategyType) bool {
	return strategy != v1alpha1.StrategyRatePerReplica
}

func backlogPerReplica(in Input, messages int64) recommendation {
	ready, err := in.Reading.Ready.LowerBound()
	if err != nil {
		return holdCurrent(in, unknownBy(err))
	}
	needed := ready / float64(messages)
	return recommend(replicasFor(needed),
		fmt.Sprintf("%s backlog / %d per replica = %.2f", short(ready), messages, needed))
}

// ratePerReplica recommends one replica for each messagesPerSecond of arrivals. It adds no trend: the user's number
// includes headroom.
func ratePerReplica(in Input, state State, messagesPerSecond float64) recommendation {
	if !state.Arrivals.known(in) {
		return withoutArrivals(in)
	}
	arriving := state.Arrivals.Rate
	needed := arriving / messagesPerSecond
	return recommend(replicasFor(needed),
		fmt.Sprintf("%s/s arriving / %s/s per replica = %.2f", short(arriving), short(messagesPerSecond), needed))
}

// tolerance is the relative deviation from the target that changes nothing: the HPA's default.
const tolerance = 0.1

// utilization recommends the replicas that bring the mean utilization to the target, and at zero, where there is none,
// those of the formula. Replicas that do not consume yet count as idle for a scale-up and as busy to the target for a
// scale-down, so that they reverse no decision.
//
// Source: Kubernetes' replica_calculator.go, which treats pods without metrics in the same way.
func utilization(in Input, state State, target float64) recommendation {
	if in.CurrentReplicas == 0 {
		return capacity(in, state)
	}
	used, err := utilized(in.Reading.Instances, state.Capacity)
	if err != nil {
		return holdCurrent(in, Hold{HoldLearning, err.Error()})
	}
	consumers, err := in.Reading.Consumers.LowerBound()
	if err != nil {
		return holdCurrent(in, unknownBy(err))
	}
	current := float64(in.CurrentReplicas)
	// Some consumers are not the target's, and replicas are as good as starting while their time is not measured.
	consumers = min(consumers, current, float64(in.Reading.Instances.Timed))
	if consumers < 1 {
		return holdCurrent(in, Hold{HoldLearning, "no replica consumes yet"})
	}
	needed := consumers * used / target
	equation := fmt.Sprintf("%.0f replicas x %.0f%% busy / %.0f%% = %.2f", consumers, percent*used, percent*target, needed)
	starting := max(0, current-consumers)
	switch deviation := used/target - 1; {
	case math.Abs(deviation) <= tolerance:
		return recommend(in.CurrentReplicas, equation+", within a tenth of the target")
	case deviation > 0 && starting > 0 && needed <= current*(1+tolerance):
		return recommend(in.CurrentReplicas, fmt.Sprintf("%s, and %.0f are starting", equation, starting))
	case deviation < 0 && starting > 0:
		return recommend(min(in.CurrentReplicas, replicasFor(needed+starting)),
			fmt.Sprintf("%s, and %.0f are starting", equation, starting))
	default:
		return recommend(replicasFor(needed), equation)
	}
}

// utilized is the share of its time that a replica uses, from 0 to 1. A saturated replica has 1.
func utilized(instances backlog.InstancesReading, capacity *LearnedCapacity) (float64, error) {
	const fix = "use strategy Capacity or RatePerReplica"
	busy, err := instances.Busy.Value()
	switch {
	case instances.Asynchronous:
		return 0, errors.New("the function is asynchronous, so its instances do not measure their utilization: " + fix)
	case errors.Is(err, backlog.ErrNotRequested):
		return 0, errors.New("the adapter does not read instance metrics: start it with --instance-metrics=Pods (value " +
			"rbac.pods of the chart), or " + fix)
	case err != nil:
		return 0, fmt.Errorf("the utilization of the instances is unknown (%w): if this persists, %s", err, fix)
	}
	return min(1, max(0, busy)/capacity.coverage()), nil
}

// recommendation is what one strategy recommends.
type recommendation struct {
	strategy v1alpha1.StrategyType
	replicas int32
	// steady is what the arrivals need, and needed what a scale-down keeps: it drains the backlog too.
	steady, needed int32
	equation       string
	terms          Terms
	// overloaded is true if one replica has too much load although the total is within the capacity of all.
	overloaded bool
	// foresees is true if a load that is about to begin needs replicas.
	foresees bool
	cappedBy string
	// unknown is true if the strategy could not compute a number.
	unknown bool
	// tried are the formula's reasons against more replicas.
	tried trial
}

func recommend(replicas int32, equation string) recommendation {
	return recommendation{replicas: replicas, steady: replicas, needed: replicas, equation: equation}
}

func holdCurrent(in Input, hold Hold) recommendation {
	a := recommend(in.CurrentReplicas, "")
	a.unknown, a.tried.held = true, &hold
	return a
}

// withinPartitions limits a recommendation to the replicas that can have a partition: more would be idle.
func (a recommendation) withinPartitions(in Input) recommendation {
	most, known := UsefulReplicas(in)
	if !known || a.unknown {
		return a
	}
	if a.replicas > max(most, in.CurrentReplicas) {
		a.cappedBy = CappedByPartitions
	}
	a.replicas, a.steady, a.needed = min(a.replicas, most), min(a.steady, most), min(a.needed, most)
	return a
}

// withinMessages limits a scale-up to one replica for each message that is in the backlog or arrives before new
// replicas consume. With long calls more replicas would have no message.
func (a recommendation) withinMessages(messages float64) recommendation {
	most := max(1, replicasFor(messages))
	if a.unknown || a.replicas <= most {
		return a
	}
	a.equation += fmt.Sprintf(", and %d have a message", most)
	a.replicas = most
	return a
}

// epsilon absorbs rounding errors of floating point: 7.0000001 replicas are 7.
const epsilon = 1e-6

func replicasFor(needed float64) int32 {
	return int32(min(math.Ceil(max(0, needed)-epsilon), math.MaxInt32/2))
}

// short formats a number for people: three significant digits, whole from 1000 on.
func short(value float64) string {
	if value >= 1000 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}
