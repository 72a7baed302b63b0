// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// normalBacklog is what is in flight anyway: five seconds of arrivals, or a quarter of a tight objective, are no
	// backlog to work off.
	normalBacklog = 5 * time.Second
	// spareWait is the share of the objective that a message may be expected to wait before replicas are added: what is
	// there is to be used.
	spareWait = 0.4
	// drainShare of the objective, but at least half a start, is the time to work off what waits: what was published while
	// replicas started is near the objective already, and faster than they start is not to be had.
	drainShare, drainStarts = 0.6, 0.5
	// full is the share of the capacity that arrivals may take for long before replicas are added whatever waits.
	full = 0.97
	// longBacklog: more than ten seconds of arrivals wait, so replicas of unknown capacity are too few.
	longBacklog = 10 * time.Second
)

const unitRate = "messages/s"

// load is what the capacity model works with: rates in messages per second, messages, seconds.
type load struct {
	planned, utilisation, one float64
	// cautious is one as far down as it may be overestimated: replicas go down no further than it allows.
	cautious float64
	// excess should not be waiting now, and waiting is that with what will have joined it when help is there.
	excess, waiting  float64
	objective, drain float64
	current          float64
	start, react     float64
	without          Part
	restarting       bool
}

// capacity asks for enough replicas to process what arrives with room for what may arrive before help is ready, and to
// work off within the objective what waits by then.
func capacity(in Input, state State) recommendation {
	ready, err := in.Reading.Ready.Value()
	if err != nil {
		return holdCurrent(in, HoldUnknown, err.Error())
	}
	if state.Arrivals == nil {
		return holdCurrent(in, HoldLearning, "the publish rate needs two answers of Pulsar")
	}
	if state.Capacity == nil {
		return unknownCapacity(in, state.Arrivals.Fast, max(0, ready-state.Floor.messages(in)))
	}
	l := newLoad(in, state, ready)
	a := l.needed(in)
	if a.replicas > in.CurrentReplicas && !a.overloaded && !l.urgent(state, a.replicas) {
		a.replicas = in.CurrentReplicas
		a.hold = &Hold{
			Reason: HoldWithinObjective,
			Message: fmt.Sprintf("at %d replicas messages wait %.0fs at most, within the objective of %.0fs",
				in.CurrentReplicas, math.Ceil(l.wait()), l.objective),
		}
	}
	return a
}

func newLoad(in Input, state State, ready float64) load {
	objective, react := latencyObjective(in.Spec).Seconds(), state.Start.react(in)
	planned := state.Arrivals.planned(in, react)
	l := load{
		planned: planned, utilisation: state.Arrivals.utilisation(in, planned, react), one: state.Capacity.MessagesPerSecond,
		cautious:  state.Capacity.cautious(in),
		objective: objective, drain: max(drainShare*objective, drainStarts*state.Start.seconds(in)),
		current: float64(in.CurrentReplicas), start: state.Start.seconds(in), react: react, without: in.Without,
	}
	l.excess = max(0, ready-state.Floor.messages(in)-state.Arrivals.Fast*l.normal())
	l.waiting = l.excess + max(0, l.planned-l.current*l.one)*l.start
	l.restarting = state.Start.restarts(in)
	if failing(in) {
		l.waiting = 0 // what fails comes back however many try
	}
	return l
}

func (l load) normal() float64 { return min(normalBacklog.Seconds(), l.objective/4) }

// needed for the arrivals, and for the arrivals with what waits.
func (l load) needed(in Input) recommendation {
	if in.Reading.Type == backlog.Failover && !in.without(PartFailover) {
		if a, ok := l.failover(in); ok {
			return a
		}
	}
	steady, drain := l.planned/(l.utilisation*l.one), (l.planned+l.waiting/l.drain)/l.one
	a := recommendation{
		replicas: replicasFor(max(steady, drain)), steady: replicasFor(steady * l.one / l.cautious),
		drain: replicasFor(drain),
	}
	a.terms = l.terms()
	if steady >= drain {
		a.equation = fmt.Sprintf("%s/s arriving / (%.2f x %s/s per replica) = %.2f", short(l.planned), l.utilisation,
			short(l.one), steady)
	} else {
		a.equation = fmt.Sprintf("(%s/s arriving + %s waiting / %.0fs) / %s/s per replica = %.2f", short(l.planned),
			short(l.waiting),
			l.drain, short(l.one), drain)
	}
	if l.restarting && float64(a.replicas) > l.current { // no replica processes meanwhile
		lost := l.planned * l.start
		a.replicas = max(a.replicas, replicasFor((l.planned+(l.waiting+lost)/l.drain)/l.one))
		a.equation += fmt.Sprintf(", and what %s more take that arrive while all restart", short(lost))
	}
	return a
}

func (l load) terms() []Term {
	return []Term{
		{"planned", l.planned, unitRate},
		{"utilization", l.utilisation, ""},
		{"capacity", l.one, unitRate},
		{"waiting", l.waiting, "messages"},
		{"drain", l.drain, "s"},
	}
}

// wait is how long a message would wait at the end of a reaction time if nothing were done.
func (l load) wait() float64 {
	have := max(l.current*l.one, hair)
	return (l.excess + max(0, l.planned-have)*l.react) / have
}

// urgent says whether more replicas are worth an action. A single one more is not for utilisation's sake alone.
func (l load) urgent(state State, wanted int32) bool {
	have := l.current * l.one
	if l.without&PartLazyUp != 0 {
		return true
	}
	late := l.wait() > spareWait*l.objective
	if !late && state.Arrivals.Slow <= full*have {
		return false
	}
	return late || float64(wanted) > l.current+1 || l.planned > min(full, 1.05*l.utilisation)*have
}

// unknownCapacity is for a Function of which no replica was seen busy yet, with so much work. What is to show what a
// replica can do must be there first: more messages wait than there are consumers, each of which may be stuck on one.
func unknownCapacity(in Input, arrival, work float64) recommendation {
	consumers, err := in.Reading.Consumers.Value()
	idle, known := idling(in, nil)
	switch {
	case err == nil && consumers >= float64(in.CurrentReplicas) && consumers > 0 &&
		work > max(consumers, arrival*longBacklog.Seconds()) && (!known || !idle):
		return recommend(2*in.CurrentReplicas,
			fmt.Sprintf("%s waiting > %.0fs of %s/s arriving: twice the %d replicas", short(work),
				longBacklog.Seconds(), short(arrival), in.CurrentReplicas))
	case work < 1 && in.CurrentReplicas > 1:
		fewer := max(1, replicasFor(leastDown*float64(in.CurrentReplicas)))
		return recommend(in.CurrentReplicas-fewer,
			fmt.Sprintf("nothing waiting at %s/s arriving: %d fewer than %d replicas", short(arrival), fewer,
				in.CurrentReplicas))
	default:
		return holdCurrent(in, HoldLearning, "no replica was seen busy yet, so what one processes is unknown")
	}
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
