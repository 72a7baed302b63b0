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
	after, saturated := learn(in, before)
	winner := ask(in, after)
	asked := after.asked(in)
	if fooled(winner.strategy) && after.Capacity != nil && saturated && winner.replicas > max(in.CurrentReplicas, asked) {
		after.Plateau = after.Plateau.begin(in, after.Capacity.MessagesPerSecond)
	}
	decision := Decision{
		Time: in.Now, Wanted: winner.replicas, Strategy: winner.strategy, Equation: winner.equation, Hold: winner.hold,
		Wait: wait(in.Reading, after.Capacity),
	}
	after.Recommendations = recommend(before.Recommendations, Recommendation{At: in.Now, Replicas: winner.steady}, downWindow(in.Spec))
	after.Drains = recommend(before.Drains, Recommendation{At: in.Now, Replicas: winner.drain}, downWindow(in.Spec)/2)
	target, held := direct(in, after, winner, asked)
	if held != nil {
		decision.Hold = held
	}
	decision.Replicas, decision.CappedBy = bound(target, in.Spec)
	if decision.Replicas > in.CurrentReplicas {
		if decision.Replicas > asked {
			after.Raised = Recommendation{At: in.Now, Replicas: decision.Replicas}
		}
	}
	after.DecidedAt = in.Now
	return decision, after
}

// learn takes in a reading, and says whether the pool was saturated.
func learn(in Input, before State) (after State, saturated bool) {
	after = before
	elapsed := time.Duration(0)
	if !before.DecidedAt.IsZero() {
		elapsed = in.Now.Sub(before.DecidedAt)
	}
	if rate, err := in.Reading.PublishRate.Value(); err == nil {
		after.Arrivals = learnArrivals(before.Arrivals, rate, in.Now, elapsed)
	}
	var known bool
	after.Capacity, saturated, known = learnCapacity(before.Capacity, in, elapsed, before.Plateau.active())
	if known && after.Capacity != nil {
		after.Plateau = before.Plateau.observe(in, saturated, before.asked(in))
	}
	return after, saturated
}

// actsWithin is how long an autoscaler may take to act on a raise: three syncs of the HPA controller.
const actsWithin = 45 * time.Second

// asked is the last raise while it may not have been acted on yet.
func (s State) asked(in Input) int32 {
	if in.Now.Sub(s.Raised.At) >= actsWithin {
		return 0
	}
	return s.Raised.Replicas
}

// leastDown is the share of the replicas that a scale-down has to save to be worth an action: each one moves messages from
// one replica to another.
const leastDown = 0.15

// direct says where to go from the present replicas, and why not where the answer says.
func direct(in Input, after State, winner answer, asked int32) (target int32, held *Hold) {
	current := in.CurrentReplicas
	if winner.replicas > current || asked > current {
		switch {
		case in.Reading.Blocked:
			return current, &Hold{Reason: HoldBlocked, Message: "dispatch is blocked until messages are acknowledged: more replicas would get none"}
		case in.Reading.Throttled:
			return current, &Hold{Reason: HoldThrottled, Message: "a dispatch rate limit of Pulsar holds messages back: more replicas would get no more"}
		default:
			return max(winner.replicas, asked), nil
		}
	}
	wanted := max(winner.steady, winner.drain)
	if age := in.Now.Sub(in.Reading.At); age > in.FreshFor && wanted < current {
		return current, &Hold{Reason: HoldOldReading, Message: oldReading(age, in.Reading.Trouble)}
	}
	if ceiling := after.Plateau.Ceiling; ceiling > 0 && ceiling < current {
		return min(wanted, current), nil // limited already by what can be fooled; whether fewer do as much is what tells a plateau
	}
	largest := after.Recommendations[0]
	if d := after.Drains[0]; d.Replicas > largest.Replicas {
		largest = d
	}
	if wanted < current && largest.Replicas > wanted {
		wanted = min(current, largest.Replicas)
		held = &Hold{Reason: HoldStabilizing, Message: fmt.Sprintf("%d replicas were needed %s ago, within the stabilization window of %s",
			largest.Replicas, in.Now.Sub(largest.At).Truncate(time.Second), downWindow(in.Spec))}
	}
	if saved := float64(current - wanted); saved > 0 && saved < leastDown*float64(current) {
		return current, &Hold{Reason: HoldSmallChange, Message: fmt.Sprintf("%d of %d replicas are enough, which saves less than %.0f %%", wanted,
			current, 100*leastDown)}
	}
	return min(current, wanted), held
}

// keep is the decision when there is nothing to decide on. The recommendation window is kept alive, so that replicas
// do not fall the moment an outage ends.
func keep(in Input, before State, hold Hold) (Decision, State) {
	after := before
	now := Recommendation{At: in.Now, Replicas: in.CurrentReplicas}
	after.Recommendations = recommend(before.Recommendations, now, downWindow(in.Spec))
	after.Drains = recommend(before.Drains, now, downWindow(in.Spec)/2)
	decision := Decision{Time: in.Now, Wanted: in.CurrentReplicas, Hold: &hold, Wait: backlog.Unknown(in.Unknown)}
	decision.Replicas, decision.CappedBy = bound(in.CurrentReplicas, in.Spec)
	return decision, after
}

// answer is what one strategy asks for.
type answer struct {
	strategy v1alpha1.StrategyType
	replicas int32
	// steady and drain are what to go down to no further than: what the arrivals need, and what they and the backlog do.
	steady, drain int32
	equation      string
	hold          *Hold
}

// ask returns the largest answer of the policy's strategies; the first of equals wins.
func ask(in Input, state State) answer {
	var winner answer
	for i, strategy := range strategies(in.Spec) {
		one := consult(strategy, in, state)
		steady, drain := max(one.steady, winner.steady), max(one.drain, winner.drain)
		if i == 0 || one.replicas > winner.replicas {
			winner = one
		}
		winner.steady, winner.drain = steady, drain
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
