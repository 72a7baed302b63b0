// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

// failingShare is the share of a line's places that jobs which failed the last time may hold: topics that never answer
// keep a place until their timeouts.
const failingShare = 4

// line has the due jobs of a lane. Their tenants take turns: a place goes to the tenant that holds the fewest, and of
// several to the one that had no turn for longest. So a tenant with one job waits for one place at most, whatever the
// others ask for.
type line struct {
	// tenants with jobs or places. A turn looks at all of them: they are the namespaces of Kubernetes that wait.
	tenants map[string]*tenant
	// inFlight and failingInFlight are the places in use; turn counts those given away.
	inFlight, failingInFlight int
	turn                      int
	// tickets counts those that were given.
	tickets int
}

// tenant is a Kubernetes namespace that asks for jobs of a line.
type tenant struct {
	name     string
	inFlight int
	lastTurn int
	// queues are of good and of failing jobs, in the order in which they became due.
	queues [2][]ticket
}

// ticket is a slot's place in a queue, with the number of the ticket in its line. It is void once the slot was started
// in the queue of another tenant.
type ticket struct {
	slot   *slot
	number int
}

func (t ticket) void() bool { return t.slot.state != queued || t.slot.ticket != t.number }

// Kinds of jobs in a line: good ones answered the last time or are new, and failing ones failed.
const (
	goodJobs = iota
	failingJobs
)

func newLine() *line { return &line{tenants: map[string]*tenant{}} }

// add queues a job for each of its tenants; one without any has a line for itself.
func (l *line) add(one *slot) {
	l.tickets++
	one.ticket = l.tickets
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
	}
}

// next returns the job that gets a place; nil if none may. Jobs that are no longer wanted are dropped.
func (l *line) next(places int, dropped func(*slot)) *slot {
	for l.inFlight < places {
		t, of := l.first(places)
		if t == nil {
			return nil
		}
		one := t.pop(of)
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

// first returns the tenant with the next turn, and the kind of its job; nil for none. Its jobs have turns in the order
// in which they became due, so that what failed once is not behind good ones for good.
func (l *line) first(places int) (first *tenant, of int) {
	mayFail := l.failingInFlight < max(1, places/failingShare)
	for _, t := range l.tenants {
		switch {
		case first != nil && !t.before(first):
		case mayFail && t.failsFirst():
			first, of = t, failingJobs
		case len(t.queues[goodJobs]) > 0:
			first, of = t, goodJobs
		}
	}
	return first, of
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
}

// recovered makes the place of a job that runs one of those that did not fail.
func (l *line) recovered(one *slot) {
	if one.failing {
		one.failing = false
		l.failingInFlight--
	}
}

func (l *line) release(one *slot) {
	t := one.turn
	one.turn = nil
	l.inFlight--
	t.inFlight--
	if one.failing {
		l.failingInFlight--
	}
	l.leave(t)
}

// leave forgets a tenant without jobs.
func (l *line) leave(t *tenant) {
	if t.inFlight == 0 && len(t.queues[goodJobs])+len(t.queues[failingJobs]) == 0 {
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

// failsFirst reports whether a failing job is the first of all.
func (t *tenant) failsFirst() bool {
	good, failing := t.queues[goodJobs], t.queues[failingJobs]
	return len(failing) > 0 && (len(good) == 0 || failing[0].number < good[0].number)
}

// before reports whether the tenant's turn comes before another's.
func (t *tenant) before(other *tenant) bool {
	if t.inFlight != other.inFlight {
		return t.inFlight < other.inFlight
	}
	if t.lastTurn != other.lastTurn {
		return t.lastTurn < other.lastTurn
	}
	return t.name < other.name
}
