// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Decide says how many replicas to run. It never goes down on what is unknown or old, and always says why.
//
//	reading -> learn -> every strategy asks -> the largest wins -> zero, or holds on the way up and down -> min and max
func Decide(in Input, before State) (Decision, State) {
	if in.Unknown != nil {
		return keep(in, before, Hold{Reason: HoldUnknown, Message: in.Unknown.Error()})
	}
	in.Reading.Type = in.SubscriptionType()
	after, saturated := learn(in, before)
	if in.CurrentReplicas >= after.Raised.Replicas {
		after.Raised = Recommendation{} // it was acted on
	}
	winner := ask(in, after)
	asked := after.asked(in)
	adopted := before.adopted(in)
	after.Recommendations = recommend(before.Recommendations,
		Recommendation{At: in.Now, Replicas: max(adopted, winner.steady)}, downWindow(in))
	after.Drains = recommend(before.Drains, Recommendation{At: in.Now, Replicas: max(adopted, winner.drain)},
		drainWindow(in))
	target, held := direct(in, after, winner, asked)
	if in.Frozen != nil {
		held = in.Frozen
	}
	if held == nil {
		held = winner.hold
	}
	decision := Decision{
		Time: in.Now, Wanted: winner.replicas, Strategy: winner.strategy, Equation: winner.equation, Terms: winner.terms,
		Hold: held,
		Wait: wait(in.Reading, after.Capacity),
	}
	decision.Replicas, decision.CappedBy = in.bound(target)
	if decision.CappedBy == "" && in.Frozen == nil {
		decision.CappedBy = winner.cappedBy
	}
	if decision.Replicas > max(in.CurrentReplicas, asked) {
		after.Raised = Recommendation{At: in.Now, Replicas: decision.Replicas}
		if fooled(winner.strategy) && after.Capacity != nil {
			after.Plateau = after.Plateau.begin(in, after.Capacity.MessagesPerSecond, saturated, decision.Replicas)
		}
	}
	if why := after.because(in, decision.Replicas); why != "" {
		decision.Strategy, decision.Equation, decision.Terms = "", why, nil
	}
	after.DecidedAt = in.Now
	return decision, after
}

// learnEvery is the least time between two readings that capacity is learned from: rates are measured over 10 s, and
// what counts polls in a row would count one twice.
const learnEvery = 5 * time.Second

// learn takes in a reading, and says whether the pool was saturated. From one that was seen before there is nothing to
// learn: decisions are made as often as something happens.
func learn(in Input, before State) (after State, saturated bool) {
	after = before
	after.Start = before.Start.learn(in)
	after.Zero = before.Zero.learn(in, before)
	after.Plateau = before.Plateau.pass(in, after.Start)
	if !in.Reading.At.After(before.ReadAt) {
		return after, false
	}
	after.ReadAt = in.Reading.At
	if rate, err := before.Arrivals.arriving(in.Reading); err == nil {
		after.Arrivals = learnArrivals(before.Arrivals, rate, after.Start.react(in))
	}
	elapsed := in.Reading.At.Sub(before.LearnedAt)
	if elapsed < learnEvery {
		return after, false
	}
	if before.LearnedAt.IsZero() {
		elapsed = 0
	}
	after.LearnedAt = in.Reading.At
	if failing(in) {
		after.FailedAt = in.Reading.At
	}
	if in.Reading.At.Sub(after.FailedAt) < failedFor {
		return after, false // what fails comes back, and is counted as done until then
	}
	after.Floor = before.Floor.learn(in, before.Capacity, elapsed)
	var known bool
	from := learning{in: in, elapsed: elapsed, frozen: after.Plateau.hides(in.Reading)}
	after.Capacity, after.Tally, saturated, known = from.capacity(before.Capacity, before.Tally)
	if known && after.Capacity != nil {
		after.Plateau = after.Plateau.observe(in, after, saturated)
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

// adopted is the present number where somebody else raised it, 0 where nobody did. It is held for a stabilization
// window, as if it had been needed, for whoever did it may know why. A lowered one is not: what is needed is added
// again.
func (s State) adopted(in Input) int32 {
	before := s.Start.Replicas
	if in.Spec.Mode == v1alpha1.ModeRecommend || before == 0 || in.CurrentReplicas <= max(before, s.Raised.Replicas) {
		return 0
	}
	return in.CurrentReplicas
}

// direct says where to go from the present replicas, and why not where the answer says.
func direct(in Input, after State, winner answer, asked int32) (target int32, held *Hold) {
	current := in.CurrentReplicas
	if current == 0 && in.least() == 0 {
		return after.Zero.wake(in, after)
	}
	if up := max(winner.replicas, asked); up > current {
		if held := holdUp(in, after); held != nil {
			return current, held
		}
		// others may start where these do not, for what arrives but not for a backlog
		if held := holdForPods(in); held != nil {
			return max(current, min(up, winner.steady)), held
		}
		return up, nil
	}
	if after.Zero.due(in) {
		return 0, nil
	}
	wanted := max(1, winner.steady, winner.drain)
	if wanted >= current {
		return current, after.Zero.idling(in)
	}
	if held := holdDown(in, after); held != nil {
		return current, held
	}
	if ceiling := after.Plateau.Ceiling; ceiling < current && wanted <= ceiling {
		return ceiling, nil // at once: whether fewer do as much is what tells a plateau
	}
	return stabilized(in, after, wanted)
}

// keep is the decision when there is nothing to decide on. The recommendation window is kept alive, so that replicas do
// not fall the moment an outage ends. Of a target at zero whose subscription is gone, by a fresh answer of Pulsar, one
// replica makes it again: what is published until then would be nobody's (subscriptionExpirationTimeMinutes removes
// idle ones). And one replica works on what waits for sure, where a topic of several is unknown.
func keep(in Input, before State, hold Hold) (Decision, State) {
	after := before
	now := Recommendation{At: in.Now, Replicas: in.CurrentReplicas}
	after.Recommendations = recommend(before.Recommendations, now, downWindow(in))
	after.Drains = recommend(before.Drains, now, drainWindow(in))
	after.Zero.IdleSince = time.Time{}
	decision := Decision{Time: in.Now, Wanted: in.CurrentReplicas, Hold: &hold, Wait: backlog.Unknown(in.Unknown)}
	target := in.CurrentReplicas
	if in.Frozen != nil {
		decision.Hold = in.Frozen
	}
	switch {
	case target > 0 || in.least() > 0 || in.Frozen != nil:
	case errors.Is(in.Unknown, backlog.ErrSubscriptionNotFound) && !errors.Is(in.Unknown, backlog.ErrStale):
		target = 1
	case before.wakesUnknown(in):
		hold.Message += fmt.Sprintf(": one replica for %s messages on other topics", short(in.ReadyAtLeast))
		target = 1
	}
	decision.Replicas, decision.CappedBy = in.bound(target)
	return decision, after
}

// answer is what one strategy asks for.
type answer struct {
	strategy v1alpha1.StrategyType
	replicas int32
	// steady and drain are what to go down to no further than: what the arrivals need, and what they and the backlog do.
	steady, drain int32
	equation      string
	terms         []Term
	// overloaded says that one replica has more to do than it can although the sum is within what all can.
	overloaded bool
	cappedBy   string
	// unknown says that nothing could be computed.
	unknown bool
	hold    *Hold
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

// bound keeps replicas within minReplicas and maxReplicas and names the bound that mattered; or where they are, when
// they have to stay there.
func (in Input) bound(replicas int32) (bounded int32, by string) {
	least := in.least()
	switch {
	case in.Frozen != nil:
		return in.CurrentReplicas, ""
	case replicas > in.Spec.MaxReplicas:
		return in.Spec.MaxReplicas, cappedByMax
	case replicas < least:
		return least, cappedByMin
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
