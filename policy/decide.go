// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Decide returns the replicas to run, and the reason. Unknown and old readings hold replicas. Partial readings have
// sums that are lower bounds: they may add replicas and remove none.
//
//	reading -> learn -> evaluate strategies -> the largest -> stabilize: zero, or holds up and down -> behavior -> bound
func Decide(in Input, before State) (Decision, State) {
	before = before.ofSubscription(in)
	before.Decided = before.Decided.resolve(in, before.ReadAt)
	if in.Unknown != nil {
		return holdUnknown(in, before)
	}
	before.Type = before.Type.learn(in)
	in.Reading.Type = before.Type.Is
	missing := in.MissingConsumers() > 0
	in = in.inReplicas()
	after, saturated := learn(in, before, missing)
	in = in.withoutSurplus()
	manual := max(before.manualScale(in), before.unseenLoad(in))
	current, kept := in.CurrentReplicas, after.Decided.or(in.CurrentReplicas)
	in.CurrentReplicas = min(current, kept) // a scale-down counts from its decision, a scale-up once it is there
	winner := evaluate(in, after)
	needed := ReplicasAt{in.Now, max(manual, winner.needed)}
	after.Recommendations = slide(before.Recommendations, needed, longestWindow, 1)
	target, tried := stabilize(in, after, winner, kept, in.Reading.At.After(before.ReadAt))
	aboutZero, awake := tried.equation, target > 0
	after.Raises, target, tried = before.Raises.limit(in, current, kept, target, tried)
	tried.held = in.explainManualRaise(tried.held, target)
	tried = tried.with(in, after, winner, target != kept)
	decision := Decision{
		Time: in.Now, Wanted: winner.replicas, Strategy: winner.strategy, Equation: winner.equation, Terms: winner.terms,
		Hold: tried.held, PassedGuards: tried.passed, Wait: wait(in, Floor{}, after.Capacity),
		Discounted: after.Floor.Messages, Service: service(in, after), Next: foresee(in, after).next(),
	}
	decision.Replicas, decision.CappedBy = in.bound(target)
	decision.Outlook = outlook(in, after, decision.Replicas)
	if decision.CappedBy == CappedByMax && winner.replicas <= in.Spec.MaxReplicas {
		decision.CappedBy = "" // it ends a hold
	}
	if decision.CappedBy == "" && in.Frozen == nil {
		decision.CappedBy = winner.cappedBy
	}
	if decision.Replicas != kept {
		after.Decided = Decided{ReplicasAt: ReplicasAt{in.Now, decision.Replicas}, From: current}
	}
	if decision.Replicas > kept && respectsCeiling(winner.strategy) && after.Capacity != nil {
		after.Plateau = after.Plateau.begin(in, after.Capacity.MessagesPerSecond, saturated, decision.Replicas)
	}
	after.Budget = before.Budget.learn(in, before, after)
	decision.Late = after.Budget.late()
	if aboutZero != "" && in.Frozen == nil && awake == (decision.Replicas > 0) { // neither behavior nor a bound changed it
		decision.Strategy, decision.Equation, decision.Terms = "", aboutZero, Terms{}
	}
	return decision, after
}

// learnEvery is the minimum time between two readings that capacity is learned from. Rates cover 10 s, so counters of
// consecutive polls would count one rate twice.
const learnEvery = 5 * time.Second

// learn learns from a reading, and reports whether the pool was saturated. Decisions are more frequent than readings,
// so it learns from each reading once. While consumers are missing, it is unknown how many replicas process.
func learn(in Input, before State, missing bool) (after State, saturated bool) {
	after = before
	after.Start = before.Start.learn(in, before.unread())
	if missing && in.Now.Sub(after.Start.Changed) > patience(in, after.Start) {
		after.Start.Open = false // the consumers that it waits for do not come
	}
	in = in.withoutSurplus()
	after.Zero = before.Zero.learn(in, before)
	after.Plateau = before.Plateau.expire(in, after.Start)
	if !in.Reading.At.After(before.ReadAt) {
		return after, false
	}
	after.ReadAt = in.Reading.At
	after.Oldest = before.Oldest.learn(in.Reading)
	if contradiction(in) != "" {
		after.ContradictedAt = cmp.Or(before.ContradictedAt, in.Reading.At)
		return after, false
	}
	after.ContradictedAt = time.Time{}
	in.Reading = confirmed(in.Reading)
	if rate, err := before.Arrivals.publishRate(in.Reading); err == nil {
		objective, react := LatencyObjective(in.Spec).Seconds(), after.Start.react(in)
		after.Pulses = foresight{in: in, state: before}.learn()
		after.Upstream = before.Upstream.learn(newestRate(in.Reading).PerSecond, in.Upstream)
		after.Arrivals = learnArrivals(before.Arrivals, rate, objective, react)
		after.Arrivals.confirm(before.Arrivals, in.Reading)
	}
	elapsed := in.Reading.At.Sub(before.LearnedAt)
	if elapsed < learnEvery || missing {
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
		return after, false // failed messages count as processed until they are redelivered
	}
	after.Floor = before.Floor.learn(in, before.Capacity, elapsed)
	after, saturated, known := after.learnCapacity(in, elapsed)
	after.Plateau = after.Plateau.slowedDown(in)
	if known && after.Capacity != nil {
		after.Capacity = probe(in, after, before.Capacity, saturated)
		after.Plateau = after.Plateau.observe(in, after, saturated)
	}
	return after, saturated
}

// with adds what is not about a change: frozen replicas, and the holds of the formula. Without a change and a hold, no
// guard counts as tried.
func (t trial) with(in Input, after State, winner recommendation, changes bool) trial {
	switch {
	case in.Frozen != nil:
		return trial{held: in.Frozen}
	case t.held != nil:
		return t
	case winner.tried.held != nil:
		return t.try(*winner.tried.held)
	case changes:
		return t
	case winner.strategy == v1alpha1.StrategyCapacity:
		return trial{held: discountedHold(in, after)}
	default:
		return trial{}
	}
}

// stabilize returns the target, starting from the replicas that were decided last, and the guards that were tried. It
// removes replicas only if fresh is true: no earlier decision used the reading.
func stabilize(in Input, after State, winner recommendation, kept int32, fresh bool) (target int32, tried trial) {
	current := in.CurrentReplicas
	tried.passed = winner.tried.passed
	if current == 0 && in.minReplicas() == 0 {
		return fromZero(in, after, winner, kept)
	}
	if up := winner.replicas; up > kept {
		tried = tried.tryUp(in, after)
		switch held := tried.held; {
		case held == nil:
			return up, tried
		case held.Reason == HoldNotStarting: // new pods may start where current ones do not: scale up for arrivals only
			return max(kept, min(up, winner.steady)), tried
		default:
			return kept, tried
		}
	}
	if kept > current {
		return kept, tried
	}
	if after.Zero.readyForZero(in) && !winner.foresees {
		idle := fmt.Sprintf("idle for %s = 0", in.Now.Sub(after.Zero.IdleSince).Truncate(time.Second))
		return 0, trial{passed: []string{HoldUnknown, HoldStabilizing}, equation: idle} // an exact count, for long enough
	}
	wanted := max(1, winner.needed)
	if wanted >= current {
		return current, after.Zero.tryIdle(in, tried)
	}
	if tried = tried.tryDown(in, after); tried.held != nil {
		return current, tried
	}
	target, early := worthwhile(in, after, wanted)
	if target < current && !fresh && current > in.minReplicas() { // otherwise the bound keeps them
		target, early = current, "only a new answer from Pulsar removes replicas"
	}
	return target, tried.try(Hold{HoldStabilizing, early})
}

// fromZero returns the target without replicas. A pulse that is about to begin also ends the pause after a wake that
// processed nothing.
func fromZero(in Input, after State, winner recommendation, kept int32) (target int32, tried trial) {
	target, tried = after.Zero.wake(in, after.Floor, winner)
	switch {
	case winner.foresees && winner.replicas > target:
		target, tried = winner.replicas, trial{passed: winner.tried.passed}
	case target == 0 && in.Reading.Coverage.Lacks(backlog.ErrSubscriptionNotFound):
		// It creates the subscription: messages on that topic are lost meanwhile.
		target, tried = 1, trial{equation: "woken from zero: a topic lacks the subscription = 1"}
	}
	if target < kept {
		return kept, trial{}
	}
	return target, tried
}

// holdUnknown decides without a reading. It keeps the windows, so that replicas do not fall when an outage ends. At
// zero, it starts one replica if Pulsar reports a missing subscription: messages are lost until a replica creates it.
func holdUnknown(in Input, before State) (Decision, State) {
	after := before
	target := before.Decided.or(in.CurrentReplicas)
	after.Recommendations = slide(before.Recommendations, ReplicasAt{in.Now, target}, longestWindow, 1)
	after.Zero.IdleSince = time.Time{}
	hold := in.Frozen
	if hold == nil {
		hold = &Hold{HoldUnknown, in.Unknown.Error()}
	}
	decision := Decision{Time: in.Now, Wanted: target, Hold: hold, Wait: backlog.Unknown(in.Unknown)}
	mayWake := target == 0 && in.minReplicas() == 0 && in.Frozen == nil && !ScaleUpDisabled(in.Spec)
	if mayWake && errors.Is(in.Unknown, backlog.ErrSubscriptionNotFound) && !errors.Is(in.Unknown, backlog.ErrStale) {
		target = 1
	}
	decision.Replicas, decision.CappedBy = in.bound(target)
	return decision, after
}
