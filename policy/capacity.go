// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// normalBacklog needs no drain: five seconds of arrivals, or a quarter of a tight objective, are always in flight.
	normalBacklog = 5 * time.Second
	// waitShare is the share of the objective that messages may wait before replicas are added: current replicas are used
	// first.
	waitShare = 0.3
	// remainingShare of the excess counts whatever the current replicas drain.
	remainingShare = 0.3
	// nearlyFull is the share of the capacity that the arrivals of one Failover consumer may take.
	nearlyFull = 0.97
	// longBacklog: while the capacity is unknown, a backlog of more than ten seconds of arrivals means too few replicas.
	longBacklog = 10 * time.Second
	// unknownStep is the share of the replicas that is removed meanwhile if no message waits.
	unknownStep = 0.1
)

// load is the input of the capacity model: rates in messages per second, messages, seconds.
type load struct {
	arriving, utilization, capacity float64
	// work is the backlog that replicas can process, and excess the part beyond the normal backlog.
	work, excess     float64
	objective, drain float64
	// planned is the objective to plan for: longer than it while budget is left.
	planned float64
	// current replicas are ordered. Of these, consuming process messages, and the others do so in starting seconds.
	current, consuming, starting float64
	// finishing is what those that consume process.
	finishing float64
	// overdue is true if those others should have started long ago, or wake from zero.
	overdue      bool
	start, react float64
	// restarts is true if a change restarts all replicas, keyed if it moves keys, aged if messages that are not stuck are
	// older than the objective, and failing if most attempts fail.
	restarts, keyed, aged, failing bool
	// noise of arriving.
	noise float64
	// expected is the rate of a load that is about to begin; 0 for none.
	expected float64
}

// capacity recommends enough replicas to process the arrivals with headroom, and to drain the backlog within the
// objective.
func capacity(in Input, state State) recommendation {
	ready, err := in.Reading.Ready.LowerBound()
	if err != nil {
		return holdCurrent(in, unknownBy(err))
	}
	work := state.Floor.work(ready)
	wakes := in.CurrentReplicas == 0 && work >= 1
	switch {
	case wakes && state.Capacity == nil:
		return wakeToLearn(in, state.Start, work)
	case wakes && state.Arrivals != nil: // also if they are unknown now: the backlog is enough
	case !state.Arrivals.known(in):
		return withoutArrivals(in)
	case state.Capacity == nil:
		return unknownCapacity(in, state.Arrivals.Rate, work)
	}
	l := newLoad(in, state, ready)
	if wakes && l.expected == 0 {
		return l.wake(state.Capacity.MessagesPerSecond)
	}
	return l.lazily(in)
}

// lazily recommends more replicas only if messages would otherwise wait too long.
func (l load) lazily(in Input) recommendation {
	a := l.recommended(in)
	a.needed = l.fewest(in, a.needed)
	more := a.replicas > in.CurrentReplicas
	if more && (a.overloaded || l.urgent()) {
		a.tried = a.tried.try(Hold{Reason: HoldWithinObjective})
		return a
	}
	a.replicas = min(in.CurrentReplicas, a.needed) // fewer may be enough, although a change needs more at first
	if more && a.replicas == in.CurrentReplicas {
		a.tried.held = &Hold{HoldWithinObjective, fmt.Sprintf(
			"at %d replicas messages wait %.0fs at most, within the objective of %.0fs",
			in.CurrentReplicas, math.Ceil(l.wait()), l.objective)}
	}
	return a
}

func withoutArrivals(in Input) recommendation {
	if err := Unsupported(in); err != nil {
		return holdCurrent(in, Hold{HoldLearning, err.Error()})
	}
	return holdCurrent(in, Hold{HoldLearning, "the publish rate is unknown until Pulsar has answered twice"})
}

// discountedHold reports that the discounted backlog changes the result; nil if it does not.
func discountedHold(in Input, state State) *Hold {
	ready, err := in.Reading.Ready.Value()
	discounted := state.Floor.Messages
	if err != nil || discounted < 1 || state.Capacity == nil || state.Arrivals == nil {
		return nil
	}
	state.Floor = Floor{}
	l := newLoad(in, state, ready)
	wanted := l.recommended(in).replicas
	if wanted <= in.CurrentReplicas || !l.urgent() {
		return nil
	}
	return &Hold{HoldDiscounted, fmt.Sprintf(
		"%s of %s messages do not count, since replicas were idle while they waited: %d replicas would be needed for all",
		short(discounted), short(ready), wanted)}
}

func newLoad(in Input, state State, ready float64) load {
	objective, start, react := LatencyObjective(in.Spec).Seconds(), state.Start.seconds(), state.Start.react(in)
	planned := objective * (1 + state.Budget.left(in))
	ahead := foresee(in, state)
	l := load{
		arriving: state.Arrivals.Rate, expected: ahead.rate(),
		utilization: state.Arrivals.targetUtilization(planned, react, ahead.replaces()),
		capacity:    state.Capacity.planned(), work: state.Floor.work(ready),
		objective: objective, planned: planned, drain: drainTime(planned, start, react), react: react,
		current: float64(state.Decided.or(in.CurrentReplicas)),
		start:   start, restarts: state.Start.restarts(in), keyed: in.Reading.Type == backlog.KeyShared, failing: failing(in),
	}
	l.consuming = float64(in.CurrentReplicas)
	if consumers, err := in.Reading.Consumers.Value(); err == nil {
		l.consuming = min(l.consuming, consumers)
	}
	l.starting, l.overdue = state.starting(in)
	l.noise = state.Arrivals.deviation(l.arriving, smoothWindow)
	l.excess = max(0, l.work-l.arriving*l.normal())
	l.finishing = l.capacity * l.consuming
	if processed, err := processRate(in.Reading); err == nil && in.Reading.SteadyConsumers &&
		l.excess > 0 && !fewMessages(in, processed) {
		l.finishing = min(l.finishing, processed) // a few replicas may hold all of the backlog
	}
	l.aged = state.Oldest.late(in) && state.Floor.Messages == 0
	if l.failing {
		l.excess = 0
	}
	return l
}

// fewest is the least number of the current replicas, from low on, that would remain: a scale-down to it needs no
// scale-up.
func (l load) fewest(in Input, low int32) int32 {
	fewer := int(max(0, in.CurrentReplicas-low))
	return low + int32(sort.Search(fewer, func(i int) bool { //nolint:gosec // fewer at most
		replicas, kept := low+int32(i), l //nolint:gosec // below fewer
		kept.current = float64(replicas)
		kept.consuming = min(l.consuming, kept.current)
		kept.finishing = min(l.finishing, l.capacity*kept.consuming)
		return !kept.urgent() || kept.recommended(in).replicas <= replicas
	}))
}

// ahead is the predicted excess when replicas that are added now consume.
func (l load) ahead() float64 {
	switch {
	case l.failing: // failed messages are redelivered, however many replicas try
		return 0
	case l.restarts: // no replica processes meanwhile
		return l.excess + l.arriving*l.start
	default:
		return l.excessAfter((l.start + l.react) / 2)
	}
}

// starting is the time in seconds until replicas that do not consume yet should do so, and overdue is true if they have
// not long after it, or wake from zero.
func (s State) starting(in Input) (seconds float64, overdue bool) {
	ordered := s.Start.Changed
	switch {
	case s.Decided.or(in.CurrentReplicas) > in.CurrentReplicas:
		ordered = s.Decided.At
	case s.Start.From == 0 && s.Start.Open:
		return 0, true // by their start, loads from zero cost 3 % more and were no less late
	case s.Start.From > s.Start.Replicas && !s.Start.restarts(in):
		return 0, false // a scale-down starts none
	}
	overdue = in.Reading.At.Sub(ordered) > patience(in, s.Start)
	return max(0, s.Start.seconds()-in.Now.Sub(ordered).Seconds()), overdue
}

func (l load) normal() float64 { return min(normalBacklog.Seconds(), l.objective/4) }

// excessAfter is the predicted excess after a time in seconds if no replica is added or removed. A part of it is never
// expected to be drained: messages may become due that no rate shows.
func (l load) excessAfter(seconds float64) float64 {
	processed := l.finishing*seconds + l.capacity*(l.current-l.consuming)*max(0, seconds-l.starting)
	return max(remainingShare*l.excess, l.excess+l.arriving*seconds-processed)
}

func (l load) recommended(in Input) recommendation {
	return l.needed(in).withinMessages(l.work + max(l.arriving, l.expected)*l.react)
}

func (l load) needed(in Input) recommendation {
	if in.Reading.Type == backlog.Failover {
		if a, ok := l.failover(in); ok {
			return a
		}
	}
	ahead := l.ahead()
	steady, drain := l.arriving/(l.utilization*l.capacity), l.drains(ahead)
	expected := l.expected / (maxUtilization * l.capacity)
	a := recommendation{
		replicas: replicasFor(max(steady, drain, expected)), steady: replicasFor(max(steady, expected)),
		needed: replicasFor(max(steady, expected, l.drains(l.excess))),
		terms:  l.terms(ahead), foresees: l.expected > 0,
	}
	switch {
	case expected > max(steady, drain):
		a.equation = fmt.Sprintf("%s/s expected / (%.2f x %s/s per replica) = %.2f", short(l.expected), maxUtilization,
			short(l.capacity), expected)
	case steady >= drain:
		a.equation = fmt.Sprintf("%s/s arriving / (%.2f x %s/s per replica) = %.2f", short(l.arriving), l.utilization,
			short(l.capacity), steady)
	default:
		a.equation = l.draining(ahead)
	}
	return a
}

// drains is the number of replicas that process the arrivals and drain a backlog in time, and draining its equation.
func (l load) drains(backlog float64) float64 { return (l.arriving + backlog/l.drain) / l.capacity }

func (l load) draining(backlog float64) string {
	return fmt.Sprintf("(%s/s arriving + %s backlog / %.0fs) / %s/s per replica = %.2f", short(l.arriving), short(backlog),
		l.drain, short(l.capacity), l.drains(backlog))
}

// wake recommends replicas at zero, strictly by the objective and by what was confirmed of each replica: the messages
// that wake them count as arrivals of wakeWindow at most.
func (l load) wake(each float64) recommendation {
	l.arriving, l.capacity = min(l.arriving, l.work/wakeWindow.Seconds()), each
	l.drain = drainTime(l.objective, l.start, l.react)
	return recommend(replicasFor(l.drains(l.work)), l.draining(l.work)).withinMessages(l.work + l.arriving*l.react)
}

func (l load) terms(backlog float64) Terms {
	return Terms{l.arriving, l.utilization, l.capacity, backlog, l.drain}
}

// wait is how long a message would wait at the end of a reaction time if the replicas stayed.
func (l load) wait() float64 {
	if l.overdue {
		l.starting = l.react
	}
	return l.excessAfter(l.react) / max(l.current*l.capacity, epsilon)
}

func (l load) urgent() bool {
	tolerated := waitShare * l.planned
	if l.restarts || l.keyed {
		tolerated = l.objective // a change disturbs all replicas
	}
	return l.aged || l.wait() > tolerated || l.arriving-l.noise > l.current*l.capacity ||
		l.expected > maxUtilization*l.current*l.capacity
}

const neverBusy = "no replica has been busy yet, so the capacity of one is unknown"

// unknownCapacity recommends replicas while no replica has been busy yet. It doubles them when each consumer has more
// than one message to work on, since each may be stuck on one. What arrives within pendingWork, or a quarter of a tight
// objective, is in calls, or its acknowledgement is on the way: Pulsar's clients send these every 100 ms.
func unknownCapacity(in Input, arrival, work float64) recommendation {
	consumers, err := in.Reading.Consumers.LowerBound()
	idle, known := idling(in, nil)
	pending := min(pendingWork, LatencyObjective(in.Spec)/4).Seconds()
	switch {
	case err == nil && consumers >= float64(in.CurrentReplicas) && consumers > 0 &&
		work > max(consumers, arrival*longBacklog.Seconds()) && (!known || !idle):
		return recommend(2*in.CurrentReplicas,
			fmt.Sprintf("%s backlog > %.0fs of %s/s arriving: twice the %d replicas", short(work),
				longBacklog.Seconds(), short(arrival), in.CurrentReplicas)).withinMessages(work)
	case work < max(1, arrival*pending) && in.CurrentReplicas > 1:
		fewer := max(1, replicasFor(unknownStep*float64(in.CurrentReplicas)))
		return recommend(in.CurrentReplicas-fewer,
			fmt.Sprintf("no message waits at %s/s arriving: %d fewer than %d replicas", short(arrival), fewer,
				in.CurrentReplicas))
	default:
		return holdCurrent(in, Hold{HoldLearning, neverBusy})
	}
}

// wakeToLearn recommends one replica at zero while the capacity is unknown, and up to firstWake if the objective is too
// short to learn it from one first.
func wakeToLearn(in Input, start Start, work float64) recommendation {
	most := int32(1)
	if LatencyObjective(in.Spec).Seconds() < start.react(in) {
		most = firstWake
	}
	replicas := max(1, int32(min(work/messagesToLearn, float64(most))))
	a := recommend(replicas, fmt.Sprintf("%s backlog / %d, at most %d while the capacity of a replica is unknown = %d",
		short(work), messagesToLearn, most, replicas))
	a.tried.held = &Hold{HoldLearning, neverBusy}
	return a
}
