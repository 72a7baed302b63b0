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
	// normalBacklog needs no drain: five seconds of arrivals, or a quarter of a tight objective, are always in flight.
	normalBacklog = 5 * time.Second
	// waitShare is the share of the objective that messages may wait before replicas are added: current replicas are used
	// first.
	waitShare = 0.4
	// drainShare of the objective, but at least half a start, is the time to drain the backlog. Messages published while
	// replicas start are already near the objective, and a time below a start cannot be met.
	drainShare, drainStarts = 0.6, 0.5
	// nearlyFull is the share of the capacity that arrivals may take for long before replicas are added, whatever the
	// backlog.
	nearlyFull = 0.97
	// longBacklog: while the capacity is unknown, a backlog of more than ten seconds of arrivals means too few replicas.
	longBacklog = 10 * time.Second
)

const unitRate = "messages/s"

const publishRateUnknown = "the publish rate is unknown until Pulsar has answered twice"

// load is the input of the capacity model: rates in messages per second, messages, seconds.
type load struct {
	planned, utilization, capacity float64
	// cautiousCapacity is the capacity less its uncertainty. It limits scale-down.
	cautiousCapacity float64
	// work is the backlog that replicas can process, and excess the part beyond the normal backlog. toDrain adds the
	// messages that arrive before new replicas consume.
	work, excess, toDrain float64
	objective, drain      float64
	current               float64
	// consuming counts the replicas that process messages, and those that are still starting.
	consuming float64
	// aged is true if the messages of work are older than the objective, whatever the backlog.
	aged         bool
	start, react float64
	without      Part
	restarting   bool
}

// capacity recommends enough replicas to process the arrivals with headroom, and to drain the backlog within the
// objective.
func capacity(in Input, state State) recommendation {
	ready, err := in.Reading.Ready.LowerBound()
	if err != nil {
		return holdCurrent(in, HoldUnknown, err.Error())
	}
	if state.Arrivals == nil {
		return holdCurrent(in, HoldLearning, publishRateUnknown)
	}
	if state.Capacity == nil {
		return unknownCapacity(in, state.Arrivals.Fast, state.Floor.work(in, ready))
	}
	l := newLoad(in, state, ready)
	a := l.recommended(in)
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

// discountedHold reports that the discounted backlog changes the result; nil if it does not.
func discountedHold(in Input, state State) *Hold {
	ready, err := in.Reading.Ready.Value()
	discounted := state.Floor.messages(in)
	if err != nil || discounted < 1 || state.Capacity == nil || state.Arrivals == nil {
		return nil
	}
	state.Floor = Floor{}
	l := newLoad(in, state, ready)
	wanted := l.recommended(in).replicas
	if wanted <= in.CurrentReplicas || !l.urgent(state, wanted) {
		return nil
	}
	return &Hold{Reason: HoldDiscounted, Message: fmt.Sprintf(
		"%s of %s messages do not count, since replicas were idle while they waited: %d replicas would be needed for all",
		short(discounted), short(ready), wanted)}
}

func newLoad(in Input, state State, ready float64) load {
	objective, react := LatencyObjective(in.Spec).Seconds(), state.Start.react(in)
	planned := state.Arrivals.plannedRate(in, react)
	l := load{
		work: state.Floor.work(in, ready), planned: planned,
		utilization:      state.Arrivals.targetUtilization(in, planned, react),
		capacity:         state.Capacity.planned(),
		cautiousCapacity: state.Capacity.cautious(in),
		objective:        objective, drain: max(drainShare*objective, drainStarts*state.Start.seconds(in)),
		current: float64(in.CurrentReplicas), start: state.Start.seconds(in), react: react, without: in.Without,
	}
	l.consuming = consuming(in, state.Start)
	age, known := oldestDue(in.Reading)
	l.aged = known && age > objective && l.work >= 1
	l.excess = max(0, l.work-state.Arrivals.Fast*l.normal())
	l.toDrain = l.excess + max(0, l.planned-l.current*l.capacity)*l.start
	l.restarting = state.Start.restarts(in)
	if failing(in) {
		l.toDrain = 0 // failed messages are redelivered, however many replicas try
	}
	return l
}

// consuming is the number of current replicas that consume or are starting.
func consuming(in Input, start Start) float64 {
	current := float64(in.CurrentReplicas)
	consumers, err := in.Reading.Consumers.Value()
	if err != nil || in.Now.Sub(start.Changed) <= patience(in, start) {
		return current
	}
	return min(current, consumers)
}

func (l load) normal() float64 { return min(normalBacklog.Seconds(), l.objective/4) }

// recommended is the needed number, limited to one replica for each message.
func (l load) recommended(in Input) recommendation {
	return l.needed(in).withinMessages(l.work + l.planned*l.react)
}

// needed is how many replicas the arrivals need, and the arrivals with the backlog.
func (l load) needed(in Input) recommendation {
	if in.Reading.Type == backlog.Failover && !in.without(PartFailover) {
		if a, ok := l.failover(in); ok {
			return a
		}
	}
	steady, drain := l.planned/(l.utilization*l.capacity), (l.planned+l.toDrain/l.drain)/l.capacity
	a := recommendation{
		replicas: replicasFor(max(steady, drain)), steady: replicasFor(steady * l.capacity / l.cautiousCapacity),
		drain: replicasFor(drain),
	}
	a.terms = l.terms()
	if steady >= drain {
		a.equation = fmt.Sprintf("%s/s arriving / (%.2f x %s/s per replica) = %.2f", short(l.planned), l.utilization,
			short(l.capacity), steady)
	} else {
		a.equation = fmt.Sprintf("(%s/s arriving + %s backlog / %.0fs) / %s/s per replica = %.2f", short(l.planned),
			short(l.toDrain),
			l.drain, short(l.capacity), drain)
	}
	if l.restarting && float64(a.replicas) > l.current { // no replica processes meanwhile
		lost := l.planned * l.start
		a.replicas = max(a.replicas, replicasFor((l.planned+(l.toDrain+lost)/l.drain)/l.capacity))
		a.equation += fmt.Sprintf(", plus replicas for %s messages that arrive during the restart", short(lost))
	}
	return a
}

func (l load) terms() []Term {
	return []Term{
		{"planned", l.planned, unitRate},
		{"utilization", l.utilization, ""},
		{"capacity", l.capacity, unitRate},
		{"backlog", l.toDrain, "messages"},
		{"drain", l.drain, "s"},
	}
}

// wait is how long a message would wait at the end of a reaction time if the replicas stayed.
func (l load) wait() float64 {
	have := max(l.consuming*l.capacity, epsilon)
	return (l.excess + max(0, l.planned-have)*l.react) / have
}

// urgent reports whether more replicas justify a change. The utilization target alone does not justify one more
// replica.
func (l load) urgent(state State, wanted int32) bool {
	have := l.consuming * l.capacity
	if l.without&PartLazyUp != 0 {
		return true
	}
	late := l.aged || l.wait() > waitShare*l.objective
	if !late && state.Arrivals.Slow <= nearlyFull*have {
		return false
	}
	return late || float64(wanted) > l.current+1 || l.planned > min(nearlyFull, 1.05*l.utilization)*have
}

// unknownCapacity recommends replicas while no replica has been busy yet. It doubles them when each consumer has more
// than one message to work on, since each may be stuck on one.
func unknownCapacity(in Input, arrival, work float64) recommendation {
	consumers, err := in.Reading.Consumers.LowerBound()
	idle, known := idling(in, nil)
	switch {
	case err == nil && consumers >= float64(in.CurrentReplicas) && consumers > 0 &&
		work > max(consumers, arrival*longBacklog.Seconds()) && (!known || !idle):
		return recommend(2*in.CurrentReplicas,
			fmt.Sprintf("%s backlog > %.0fs of %s/s arriving: twice the %d replicas", short(work),
				longBacklog.Seconds(), short(arrival), in.CurrentReplicas)).withinMessages(work)
	case work < 1 && in.CurrentReplicas > 1:
		fewer := max(1, replicasFor(minScaleDown*float64(in.CurrentReplicas)))
		return recommend(in.CurrentReplicas-fewer,
			fmt.Sprintf("no backlog at %s/s arriving: %d fewer than %d replicas", short(arrival), fewer,
				in.CurrentReplicas))
	default:
		return holdCurrent(in, HoldLearning, "no replica has been busy yet, so the capacity of one is unknown")
	}
}

// wait is how long the ready messages take with the replicas that consume now. It is a lower bound if some topics are
// unknown.
func wait(reading backlog.Reading, capacity *LearnedCapacity) backlog.Measurement {
	ready, err := reading.Ready.LowerBound()
	if err != nil {
		return backlog.Unknown(err)
	}
	seconds, err := waitFor(ready, reading, capacity)
	switch {
	case err != nil:
		return backlog.Unknown(err)
	case !reading.Coverage.Complete():
		return backlog.AtLeast(seconds, reading.Coverage.Err())
	default:
		return backlog.Known(seconds)
	}
}

// waitOf is wait with so many messages ready.
func waitOf(messages float64, reading backlog.Reading, capacity *LearnedCapacity) backlog.Measurement {
	reading.Ready = backlog.Known(messages)
	return wait(reading, capacity)
}

// waitFor is how long this number of messages takes.
func waitFor(ready float64, reading backlog.Reading, capacity *LearnedCapacity) (seconds float64, err error) {
	if ready < 1 {
		return 0, nil
	}
	// Each replica consumes all topics, so the consumers of the known topics are all consumers.
	if consumers, err := reading.Consumers.LowerBound(); err == nil && consumers > 0 && capacity != nil {
		return ready / (consumers * capacity.MessagesPerSecond), nil
	}
	processed, err := reading.ProcessRate.Value()
	switch {
	case err != nil:
		return 0, err
	case processed <= 0:
		return 0, backlog.ErrNoRate // nothing is processed: no finite answer
	}
	return ready / processed, nil
}
