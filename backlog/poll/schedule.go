// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// schedule says which job is due when. It belongs to the Poller's loop and is not safe for concurrent use.
type schedule struct {
	pace     pace
	slots    map[backlog.Job]*slot
	timeline backlog.Timeline[*slot] // all slots that are not busy
	waiting  map[lane][]*slot        // due and without a free place, in the order in which they became due
	inFlight map[lane]int
	// postponed topics wait longer than the interval because a bulk answer confirmed them.
	postponed map[backlog.Cluster]map[*slot]struct{}
}

// pace is how long jobs wait. A job is due at the moments of a row that its interval apart make, so that nothing gets
// older than that, nothing is fetched more often, and jobs that are spread stay so.
type pace struct {
	// interval between two fetches of a topic, which the first ones of many topics are spread over.
	interval time.Duration
	// jitter returns a number in [0,1).
	jitter func() float64
	// after returns the interval of a kind, or how long a job waits after so many failures in a row.
	after func(kind backlog.JobKind, failures int) time.Duration
}

// lane is what has a bound of its own on how much of it runs at once: a cluster, all workloads, or the one bulk answer
// of a cluster, which may take a minute and come from elsewhere.
type lane struct {
	cluster         backlog.Cluster
	workloads, bulk bool
}

func laneOf(j backlog.Job) lane {
	return lane{cluster: j.Cluster, workloads: j.Kind == backlog.WorkloadKind, bulk: j.Kind == backlog.BulkKind}
}

// slot is one job in the schedule.
type slot struct {
	job          backlog.Job
	moment       backlog.Moment[*slot] // on the timeline
	due          time.Time
	failures     int       // in a row
	goodAt       time.Time // end of the last good fetch
	state        slotState
	gone         bool // no longer wanted, while busy
	again        bool // cannot wait, while running
	wasPostponed bool // before it became due
	hastened     bool // perhaps with others, so that it needs a row of its own
}

// slotState is where a slot is.
type slotState uint8

const (
	onTimeline slotState = iota
	inLine               // for a place
	running
)

func newSchedule(pace pace) *schedule {
	return &schedule{
		pace: pace, slots: map[backlog.Job]*slot{}, waiting: map[lane][]*slot{}, inFlight: map[lane]int{},
		postponed: map[backlog.Cluster]map[*slot]struct{}{},
	}
}

// apply brings the schedule up to date with what is wanted.
func (s *schedule) apply(changes []backlog.Change, now time.Time) {
	var soon []*slot
	for _, c := range changes {
		existing := s.slots[c.Job]
		switch {
		case existing == nil && c.Wanted:
			existing = &slot{job: c.Job, due: now.Add(s.pace.after(c.Job.Kind, 0))}
			existing.moment.Element = existing
			s.slots[c.Job] = existing
			s.timeline.Set(&existing.moment, existing.due)
		case existing == nil:
			continue
		case !c.Wanted:
			s.drop(existing)
			continue
		}
		existing.gone = false
		if c.Soon {
			soon = append(soon, existing)
		}
	}
	s.hasten(soon, now)
}

// drop removes what is no longer wanted, at once or when its fetch has ended.
func (s *schedule) drop(one *slot) {
	s.resume(one)
	if one.state != onTimeline {
		one.gone, one.again = true, false
		return
	}
	s.timeline.Remove(&one.moment)
	delete(s.slots, one.job)
}

// maxAtOnce is how many jobs of a kind in a lane may become due in one tick: 100 requests of a few milliseconds each
// are over in a blink. A start with 10 000 topics is more than that.
const maxAtOnce = 100

// hasten makes jobs due at once; of many, those beyond the first are spread over the interval.
func (s *schedule) hasten(slots []*slot, now time.Time) {
	type group struct {
		lane lane
		kind backlog.JobKind
	}
	counts := map[group]int{}
	for _, one := range slots {
		s.resume(one)
		switch one.state {
		case inLine:
		case running:
			one.again = true
		case onTimeline:
			due := now
			g := group{laneOf(one.job), one.job.Kind}
			if counts[g]++; counts[g] > maxAtOnce {
				due = now.Add(time.Duration(s.pace.jitter() * float64(s.pace.interval)))
			}
			if due.Before(one.due) {
				one.due, one.hastened = due, due.Equal(now)
				s.timeline.Set(&one.moment, one.due)
			}
		}
	}
}

// postpone lets a job wait longer.
func (s *schedule) postpone(j backlog.Job, due time.Time) {
	one := s.slots[j]
	if one == nil || one.state != onTimeline || !due.After(one.due) {
		return
	}
	one.due = due
	s.timeline.Set(&one.moment, one.due)
	if s.postponed[j.Cluster] == nil {
		s.postponed[j.Cluster] = map[*slot]struct{}{}
	}
	s.postponed[j.Cluster][one] = struct{}{}
	one.wasPostponed = true
}

// resume ends a postponement.
func (s *schedule) resume(one *slot) {
	one.wasPostponed = false
	slots := s.postponed[one.job.Cluster]
	delete(slots, one)
	if len(slots) == 0 {
		delete(s.postponed, one.job.Cluster)
	}
}

// enqueue lines up what is due.
func (s *schedule) enqueue(now time.Time) {
	for one, due := s.timeline.Due(now); due; one, due = s.timeline.Due(now) {
		s.timeline.Remove(&one.moment)
		wasPostponed := one.wasPostponed
		s.resume(one)
		one.state, one.wasPostponed = inLine, wasPostponed
		s.waiting[laneOf(one.job)] = append(s.waiting[laneOf(one.job)], one)
	}
}

// start returns the jobs to fetch now: as many of each lane as have a place.
func (s *schedule) start(perCluster, workloads int) []backlog.Job {
	var jobs []backlog.Job
	for lane, waiting := range s.waiting {
		places := perCluster
		if lane.workloads {
			places = workloads
		}
		for len(waiting) > 0 && s.inFlight[lane] < places {
			one := waiting[0]
			waiting = waiting[1:]
			if one.gone {
				delete(s.slots, one.job)
				continue
			}
			one.state = running
			s.inFlight[lane]++
			jobs = append(jobs, one.job)
		}
		if s.waiting[lane] = waiting; len(waiting) == 0 {
			delete(s.waiting, lane)
		}
	}
	return jobs
}

// late is how long after it was due a fetch that starts now begins: a lane without a free place delays those in line.
func (s *schedule) late(j backlog.Job, now time.Time) time.Duration {
	return max(0, now.Sub(s.slots[j].due))
}

// finish takes in how a fetch ended.
func (s *schedule) finish(j backlog.Job, err error, now time.Time) {
	if s.inFlight[laneOf(j)]--; s.inFlight[laneOf(j)] == 0 {
		delete(s.inFlight, laneOf(j))
	}
	one := s.slots[j]
	if one.gone {
		delete(s.slots, j)
		return
	}
	switch {
	case err == nil:
		one.failures, one.goodAt = 0, now
	case backlog.Authoritative(err):
		one.failures = 0 // Pulsar answers: fetch again at the usual pace
	default:
		one.failures++
	}
	again := one.again && err == nil
	if one.due = s.next(one, now); again {
		one.due = now
	}
	one.hastened, one.again, one.state = again, false, onTimeline
	s.timeline.Set(&one.moment, one.due)
}

// next is the moment of the job's row after now, whenever it was fetched for the last one. After a failure another row
// begins; and so it does up to half a topic's interval early after a job was hastened, because many may have been at
// the same time, and a rate over a shorter time is noisy.
func (s *schedule) next(one *slot, now time.Time) time.Time {
	wait := s.pace.after(one.job.Kind, one.failures)
	due := one.due.Add(wait)
	switch {
	case one.failures > 0:
		return now.Add(wait)
	case one.hastened:
		early := min(s.pace.interval/2, due.Sub(now))
		due = due.Add(-time.Duration(s.pace.jitter() * float64(max(0, early))))
	}
	if late := now.Sub(due); late >= 0 {
		due = now.Add(wait - late%wait)
	}
	return due
}
