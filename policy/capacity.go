// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Constants of the capacity model in its first form: a target utilisation that leaves room for what arrives while a
// replica starts, a drain time within the latency objective, and smoothing with the half-lives of a 15 s tick.
const (
	// targetUtilisation: replicas are sized so that the present rate keeps them 70 % busy.
	targetUtilisation = 0.7
	// normalBacklog is what is in flight anyway: five seconds of arrivals are no backlog to work off.
	normalBacklog = 5 * time.Second
	// drainFactor: what waits is to be worked off within twice the latency objective.
	drainFactor = 2
	// smoothingTick is the tick that the two weights are stated for.
	smoothingTick = 15 * time.Second
	// arrivalWeight of a new publish rate, per tick; a rise of more than arrivalJump is taken at once.
	arrivalWeight = 0.5
	arrivalJump   = 1.3
	// capacityWeight of a new observation, per tick.
	capacityWeight = 0.3
	// waitingWork is how much of the pool's work has to wait all the time for the pool to count as busy.
	waitingWork = time.Second
	// longBacklog: more than ten seconds of arrivals wait, so replicas whose capacity is unknown are too few.
	longBacklog = 10 * time.Second
)

// capacity asks for the larger of what the arrivals need at the target utilisation and what works off the backlog
// within the latency objective.
//
//	N = ceil max( λ/(ρ·μ), (λ + max(0, B − 5 s·λ)/(2·L)) / μ )
func capacity(in Input, state State) answer {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return answer{replicas: in.CurrentReplicas, hold: &Hold{Reason: HoldUnknown, Message: err.Error()}}
	}
	if state.ArrivalRate == nil {
		return answer{replicas: in.CurrentReplicas, hold: &Hold{Reason: HoldLearning, Message: "the publish rate needs two answers of Pulsar"}}
	}
	arrival := *state.ArrivalRate
	if state.Capacity == nil {
		return unknownCapacity(in, arrival, ready)
	}
	one := state.Capacity.MessagesPerSecond
	over := drainFactor * latencyObjective(in.Spec).Seconds()
	excess := max(0, ready-arrival*normalBacklog.Seconds())
	steady := arrival / (targetUtilisation * one)
	drain := (arrival + excess/over) / one
	if steady >= drain {
		return answer{
			replicas: replicasFor(steady),
			equation: fmt.Sprintf("%s/s arriving / (%.1f x %s/s per replica) = %.2f", short(arrival), targetUtilisation, short(one), steady),
		}
	}
	return answer{
		replicas: replicasFor(drain),
		equation: fmt.Sprintf("(%s/s arriving + %s waiting / %.0fs) / %s/s per replica = %.2f", short(arrival), short(excess), over, short(one), drain),
	}
}

// unknownCapacity asks for replicas while nobody has seen one busy: twice as many when work piles up before all of
// them, one fewer when none waits (the stabilization window makes that one step a window, until a replica is busy and
// its capacity is learned), else what there is. Work piles up when more waits than a message for each replica: one that
// is slow or stuck keeps one replica busy, and no others.
func unknownCapacity(in Input, arrival, ready float64) answer {
	learning := &Hold{Reason: HoldLearning, Message: "no replica was seen busy yet, so what one processes is unknown"}
	consumers, err := in.Reading.Consumers.Value()
	switch {
	case err == nil && consumers >= float64(in.CurrentReplicas) && consumers > 0 && ready > max(consumers, arrival*longBacklog.Seconds()):
		return answer{
			replicas: 2 * in.CurrentReplicas,
			equation: fmt.Sprintf("%s waiting > %.0fs of %s/s arriving: twice the %d replicas", short(ready), longBacklog.Seconds(), short(arrival), in.CurrentReplicas),
		}
	case ready < 1 && in.CurrentReplicas > 1:
		return answer{
			replicas: in.CurrentReplicas - 1,
			equation: fmt.Sprintf("nothing waiting at %s/s arriving: one fewer than %d replicas", short(arrival), in.CurrentReplicas),
		}
	default:
		return answer{replicas: in.CurrentReplicas, hold: learning}
	}
}

// backlogPerReplica asks for one replica for each so many ready messages.
func backlogPerReplica(in Input, messages int64) answer {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return answer{replicas: in.CurrentReplicas, hold: &Hold{Reason: HoldUnknown, Message: err.Error()}}
	}
	needed := ready / float64(messages)
	return answer{
		replicas: replicasFor(needed),
		equation: fmt.Sprintf("%s waiting / %d per replica = %.2f", short(ready), messages, needed),
	}
}

// replicasFor rounds up, and stays in int32: the bounds of the policy follow.
func replicasFor(needed float64) int32 {
	// A hair above an integer is that integer: 7.0000001 replicas come from floating point, not from load.
	const hair = 1e-6
	return int32(min(math.Ceil(max(0, needed)-hair), math.MaxInt32/2))
}

// learn takes the arrival rate and the capacity of a replica from a reading.
func learn(in Input, before State) State {
	after := before
	elapsed := in.Now.Sub(before.DecidedAt)
	if rate, err := in.Reading.PublishRate.Value(); err == nil {
		after.ArrivalRate = smoothArrivals(before.ArrivalRate, rate, elapsed)
	}
	if observed, ok := observeCapacity(in.Reading); ok {
		after.Capacity = smoothCapacity(before.Capacity, observed, elapsed, in.Now)
	}
	return after
}

// smoothArrivals follows a jump up at once and everything else with a half-life of one tick.
func smoothArrivals(before *float64, rate float64, elapsed time.Duration) *float64 {
	if before == nil || rate > arrivalJump**before {
		return &rate
	}
	smoothed := *before + weight(arrivalWeight, elapsed)*(rate-*before)
	return &smoothed
}

// smoothCapacity averages the first observations and then follows with the weight of a tick.
func smoothCapacity(before *LearnedCapacity, observed float64, elapsed time.Duration, now time.Time) *LearnedCapacity {
	if before == nil {
		return &LearnedCapacity{MessagesPerSecond: observed, Observations: 1, LearnedAt: now}
	}
	count := min(before.Observations, math.MaxInt32-1) + 1
	w := max(weight(capacityWeight, elapsed), 1/float64(count))
	return &LearnedCapacity{
		MessagesPerSecond: before.MessagesPerSecond + w*(observed-before.MessagesPerSecond),
		Observations:      count,
		LearnedAt:         now,
	}
}

// weight turns a weight per tick into the weight of an arbitrary time: what is left of the old value decays alike.
func weight(perTick float64, elapsed time.Duration) float64 {
	if elapsed <= 0 {
		return 0
	}
	return 1 - math.Pow(1-perTick, elapsed.Seconds()/smoothingTick.Seconds())
}

// observeCapacity returns what one replica processed while all of them were busy all through the window of the
// reading; then throughput itself is capacity.
//
// Busy: the same consumers throughout, and always a second of their work that another consumer could have taken. Less
// proves nothing: a pool that keeps up with 500/s has five messages between the broker's ledger and its dispatcher at
// any time, and calling it busy took 13 % off what was learned. A single consumer has nobody to share with, so for
// it a second of its work may wait with itself. Several
// consumers of a Failover subscription are not observed: some of them stand by, and Pulsar does not count what was
// dispatched to the others.
func observeCapacity(reading backlog.Reading) (messagesPerSecond float64, busy bool) {
	processed, err := reading.ProcessRate.Value()
	if err != nil || processed <= 0 || !reading.SteadyConsumers || reading.Blocked {
		return 0, false
	}
	consumers, err := reading.Consumers.Value()
	if err != nil || consumers < 1 {
		return 0, false
	}
	enough := max(1, processed*waitingWork.Seconds())
	if undispatched, err := reading.LeastUndispatched.Value(); err == nil && undispatched >= enough {
		return processed / consumers, true
	}
	if ready, err := reading.LeastReady.Value(); err == nil && consumers == 1 && ready >= enough {
		return processed / consumers, true
	}
	return 0, false
}

// short writes a quantity for a person: three significant digits below a thousand, whole numbers above.
func short(value float64) string {
	if value >= 1000 {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}
