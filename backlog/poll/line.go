// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"container/heap"
	"slices"
)

// failingShare is the share of a line's places that jobs which failed the last time may hold: topics that never answer
// keep a place until their timeouts.
const failingShare = 4

// line has the due jobs of a lane. Their tenants take turns: a place goes to the tenant that holds the fewest, and of
// several to the one that had no turn for longest. So a tenant with one job waits for one place at most, whatever the
// others ask for.
type line struct {
	tenants map[string]*tenant
	// good have jobs that answered the last time or are new, failing have jobs that failed; a tenant may be in both.
	good, failing turns
	// inFlight and failingInFlight are the places in use; turn counts those given away.
	inFlight, failingInFlight int
	turn                      int
}

// tenant is a Kubernetes namespace that asks for jobs of a line.
type tenant struct {
	name     string
	inFlight int
	lastTurn int
	// queues are of good and of failing jobs, in the order in which they became due, and positions those in turns, from 1.
	queues    [2][]ticket
	positions [2]int
}

// ticket is a slot's place in a queue. It is void once the slot was started in the queue of another tenant.
type ticket struct {
	slot   *slot
	number int
}

func (t ticket) void() bool { return t.slot.state != queued || t.slot.ticket != t.number }

// kinds of jobs in a line.
const (
	goodJobs = iota
	failingJobs
)

func newLine() *line {
	return &line{tenants: map[string]*tenant{}, good: turns{of: goodJobs}, failing: turns{of: failingJobs}}
}

func (l *line) turns(of int) *turns {
	if of == goodJobs {
		return &l.good
	}
	return &l.failing
}

// add queues a job for each of its tenants; one without any has a line for itself.
func (l *line) add(one *slot) {
	one.ticket++
	of := goodJobs
	if one.failures > 0 {
		of = failingJobs
	}
	names := one.tenants
	if len(names) == 0 {
		names = []string{""}
	}
	for _, name := range names {
		t := l.tenants[name]
		if t == nil {
			t = &tenant{name: name}
			l.tenants[name] = t
		}
		t.queues[of] = append(t.queues[of], ticket{one, one.ticket})
		if t.positions[of] == 0 {
			heap.Push(l.turns(of), t)
		}
	}
}

// next returns the job that gets a place; nil if none may. Jobs that are no longer wanted are dropped.
func (l *line) next(places int, dropped func(*slot)) *slot {
	for l.inFlight < places {
		of := l.choose(places)
		if of < 0 {
			return nil
		}
		t := l.turns(of).tenants[0]
		one := t.pop(of)
		if len(t.queues[of]) == 0 {
			heap.Pop(l.turns(of))
		}
		switch {
		case one == nil:
			l.leave(t)
		case one.unwanted:
			dropped(one)
			l.leave(t)
		default:
			l.occupy(t, one)
			return one
		}
	}
	return nil
}

// choose returns the kind of job that is next; -1 for none.
func (l *line) choose(places int) int {
	mayFail := len(l.failing.tenants) > 0 && l.failingInFlight < max(1, places/failingShare)
	switch {
	case len(l.good.tenants) == 0 && !mayFail:
		return -1
	case len(l.good.tenants) == 0:
		return failingJobs
	case mayFail && l.failing.tenants[0].before(l.good.tenants[0]):
		return failingJobs
	default:
		return goodJobs
	}
}

// occupy gives a place to a job in the turn of a tenant.
func (l *line) occupy(t *tenant, one *slot) {
	l.turn++
	t.inFlight++
	t.lastTurn = l.turn
	l.inFlight++
	if one.failing = one.failures > 0; one.failing {
		l.failingInFlight++
	}
	one.turn = t
	l.moved(t)
}

// recovered makes the place of a job that runs one of those that did not fail.
func (l *line) recovered(one *slot) {
	if one.failing {
		one.failing = false
		l.failingInFlight--
	}
}

// release frees the place of a job.
func (l *line) release(one *slot) {
	t := one.turn
	one.turn = nil
	l.inFlight--
	t.inFlight--
	if one.failing {
		l.failingInFlight--
	}
	l.moved(t)
	l.leave(t)
}

// moved restores the order after the turn or the places of a tenant changed.
func (l *line) moved(t *tenant) {
	for of, position := range t.positions {
		if position > 0 {
			heap.Fix(l.turns(of), position-1)
		}
	}
}

// leave forgets a tenant without jobs.
func (l *line) leave(t *tenant) {
	if t.inFlight == 0 && t.positions == [2]int{} {
		delete(l.tenants, t.name)
	}
}

// isEmpty reports whether the line has neither jobs nor places in use.
func (l *line) isEmpty() bool { return len(l.tenants) == 0 }

// pop returns the first job of a queue; nil if that was void.
func (t *tenant) pop(of int) *slot {
	first := t.queues[of][0]
	t.queues[of] = t.queues[of][1:]
	if first.void() {
		return nil
	}
	return first.slot
}

// before reports whether the tenant's turn comes before another's.
func (t *tenant) before(other *tenant) bool {
	if t.inFlight != other.inFlight {
		return t.inFlight < other.inFlight
	}
	return t.lastTurn < other.lastTurn
}

// turns orders the tenants that have jobs of one kind. It implements heap.Interface.
type turns struct {
	of      int
	tenants []*tenant
}

func (h *turns) Len() int           { return len(h.tenants) }
func (h *turns) Less(i, j int) bool { return h.tenants[i].before(h.tenants[j]) }

func (h *turns) Swap(i, j int) {
	h.tenants[i], h.tenants[j] = h.tenants[j], h.tenants[i]
	h.tenants[i].positions[h.of], h.tenants[j].positions[h.of] = i+1, j+1
}

func (h *turns) Push(x any) {
	t, _ := x.(*tenant) // only add pushes
	h.tenants = append(h.tenants, t)
	t.positions[h.of] = len(h.tenants)
}

func (h *turns) Pop() any {
	last := len(h.tenants) - 1
	t := h.tenants[last]
	h.tenants = slices.Delete(h.tenants, last, last+1)
	t.positions[h.of] = 0
	return t
}
