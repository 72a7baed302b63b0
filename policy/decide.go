// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Decide says how many replicas to run. It never goes down on what is unknown or old, and always says why.
//
//	reading -> learn -> every strategy asks -> the largest wins -> blocked, old and recent holds -> min and max
func Decide(in Input, before State) (Decision, State) {
	if in.Unknown != nil {
		return keep(in, before, Hold{Reason: HoldUnknown, Message: in.Unknown.Error()})
	}
	after := learn(in, before)
	winner := ask(in, after)
	decision := Decision{
		Time: in.Now, Wanted: winner.replicas, Strategy: winner.strategy, Equation: winner.equation, Hold: winner.hold,
		Wait: wait(in.Reading, after.Capacity),
	}
	target := winner.replicas
	if in.Reading.Blocked && target > in.CurrentReplicas {
		target = in.CurrentReplicas
		decision.Hold = &Hold{Reason: HoldBlocked, Message: "dispatch is blocked until messages are acknowledged: more replicas would get none"}
	}
	if age := in.Now.Sub(in.Reading.At); age > in.FreshFor && target < in.CurrentReplicas {
		target = in.CurrentReplicas
		decision.Hold = &Hold{Reason: HoldOldReading, Message: oldReading(age, in.Reading.Trouble)}
	}
	after.Recommendations = recommend(before.Recommendations, Recommendation{At: in.Now, Replicas: target}, downWindow(in.Spec))
	if largest := after.Recommendations[0]; largest.Replicas > target && target < in.CurrentReplicas {
		target = min(largest.Replicas, in.CurrentReplicas)
		decision.Hold = &Hold{Reason: HoldStabilizing, Message: fmt.Sprintf(
			"%d replicas were needed %s ago, within the stabilization window of %s",
			largest.Replicas, in.Now.Sub(largest.At).Truncate(time.Second), downWindow(in.Spec))}
	}
	decision.Replicas, decision.CappedBy = bound(target, in.Spec)
	after.DecidedAt = in.Now
	return decision, after
}

// keep is the decision when there is nothing to decide on. The recommendation window is kept alive, so that replicas
// do not fall the moment an outage ends.
func keep(in Input, before State, hold Hold) (Decision, State) {
	after := before
	after.Recommendations = recommend(before.Recommendations,
		Recommendation{At: in.Now, Replicas: in.CurrentReplicas}, downWindow(in.Spec))
	decision := Decision{Time: in.Now, Wanted: in.CurrentReplicas, Hold: &hold, Wait: backlog.Unknown(in.Unknown)}
	decision.Replicas, decision.CappedBy = bound(in.CurrentReplicas, in.Spec)
	return decision, after
}

// answer is what one strategy asks for.
type answer struct {
	strategy v1alpha1.StrategyType
	replicas int32
	equation string
	hold     *Hold
}

// ask returns the largest answer of the policy's strategies; the first of equals wins.
func ask(in Input, state State) answer {
	var winner answer
	for i, strategy := range strategies(in.Spec) {
		var one answer
		switch strategy.Type {
		case v1alpha1.StrategyBacklogPerReplica:
			one = backlogPerReplica(in, strategy.BacklogPerReplica.Messages)
		case v1alpha1.StrategyCapacity:
			one = capacity(in, state)
		}
		one.strategy = strategy.Type
		if i == 0 || one.replicas > winner.replicas {
			winner = one
		}
	}
	return winner
}

// bound keeps replicas within minReplicas and maxReplicas and names the bound that mattered.
func bound(replicas int32, spec v1alpha1.AutoscalingPolicySpec) (bounded int32, by string) {
	switch {
	case replicas > spec.MaxReplicas:
		return spec.MaxReplicas, cappedByMax
	case replicas < max(1, spec.MinReplicas):
		return max(1, spec.MinReplicas), cappedByMin
	default:
		return replicas, ""
	}
}

// recommend adds a recommendation and returns those of the window, the largest first: each is larger than all after
// it, so the first is the maximum ("ascending minima", as in Knative's and Kubernetes' sliding windows). It does not
// write into the slice it was given.
func recommend(before []Recommendation, newest Recommendation, window time.Duration) []Recommendation {
	after := make([]Recommendation, 0, len(before)+1)
	for _, r := range before {
		if newest.At.Sub(r.At) < window && r.Replicas > newest.Replicas {
			after = append(after, r)
		}
	}
	return append(after, newest)
}

// wait is how long the ready messages take with the replicas that consume now.
func wait(reading backlog.Reading, capacity *LearnedCapacity) backlog.Measurement {
	ready, err := reading.Ready.Value()
	if err != nil {
		return backlog.Unknown(err)
	}
	if ready < 1 {
		return backlog.Known(0)
	}
	if consumers, err := reading.Consumers.Value(); err == nil && consumers > 0 && capacity != nil {
		return backlog.Known(ready / (consumers * capacity.MessagesPerSecond))
	}
	processed, err := reading.ProcessRate.Value()
	switch {
	case err != nil:
		return backlog.Unknown(err)
	case processed <= 0:
		return backlog.Unknown(backlog.ErrNoRate) // nothing moves: no finite answer
	}
	return backlog.Known(ready / processed)
}

func oldReading(age time.Duration, trouble error) string {
	if trouble == nil {
		return fmt.Sprintf("the last answer of Pulsar is %s old", age.Truncate(time.Second))
	}
	return fmt.Sprintf("the last good answer of Pulsar is %s old: %s", age.Truncate(time.Second), trouble)
}
