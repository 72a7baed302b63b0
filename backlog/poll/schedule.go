// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"container/heap"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// schedule determines when each job is due. It belongs to the Poller's loop and is not safe for concurrent use.
type schedule struct {
	pace       pace
	slots      map[backlog.Job]*slot
	timeline   timeline       // all slots that are not busy
	lines      map[lane]*line // due jobs, and those that run
	watches    int            // places of jobs that watch
	nextAnswer time.Time      // the earliest fetch after the next message
	expired    time.Time      // when interest ended last that was not renewed
}

// pace has the intervals of jobs. The times at which a job is due are one interval apart, and a late fetch does not
// move them. So jobs that are spread over an interval stay spread.
type pace struct {
	// interval between two fetches of a topic. The first fetches of many topics are spread over it.
	interval time.Duration
	// rest is the interval of topics at rest, and quick that of topics of which messages wait for the next answer.
	rest, quick time.Duration
	// jitter returns a number in [0,1).
	jitter func() float64
	// after returns the interval of a kind, or the delay of a job after a number of consecutive failures.
	after func(kind backlog.JobKind, failures int) time.Duration
}

// lane has its own limit of concurrent fetches: an admin URL, whatever the credentials, all workloads, or all watches.
type lane struct {
	adminURL           string
	workloads, watches bool
}

func laneOf(j backlog.Job) lane {
	if j.Kind == backlog.WatchKind {
		return lane{watches: true}
	}
	return lane{adminURL: j.Cluster.AdminURL, workloads: j.Kind == backlog.WorkloadKind}
}

type slot struct {
	job      backlog.Job
	tenants  []string
	position int // on the timeline, from 1; 0 while it is busy
	due      time.Time
	failures int // in a row
	state    slotState
	unwanted bool // no longer wanted, while busy
	rerun    bool // cannot wait, while running
	hastened bool // perhaps with others, so that it needs a row of its own
	pace     backlog.Pace
	wait     time.Duration // the last one that followed the pace
	ticket   int           // its last one in a line
	turn     *tenant       // in the turn of which it runs
	failing  bool          // it held a place of those that failed
	watched  watched       // of a topic
	empty    bool          // no backlog in the last answer, of a topic that may be watched
	topic    *slot         // of a job that watches
	message  bool          // it ended the watch
	stop     func()        // ends it
}

type slotState uint8

const (
	onTimeline slotState = iota
	queued               // for a place
	running
)

func newSchedule(pace pace) *schedule {
	return &schedule{pace: pace, slots: map[backlog.Job]*slot{}, lines: map[lane]*line{}}
}

// expireEvery is how often interest that was not renewed ends.
const expireEvery = time.Second

// update applies what changed in the store, and enqueues the jobs that are due.
func (s *schedule) update(store *backlog.Store, feed *backlog.Feed, now time.Time) {
	if now.Sub(s.expired) >= expireEvery {
		s.expired = now
		store.Expire(now)
	}
	s.apply(feed.Changes(), now)
	s.enqueue(now)
}

func (s *schedule) apply(changes []backlog.Change, now time.Time) {
	var soon []*slot
	for _, c := range changes {
		existing := s.slots[c.Job]
		switch {
		case existing == nil && c.Wanted:
			existing = &slot{job: c.Job, wait: s.pace.after(c.Job.Kind, 0)}
			existing.due = now.Add(existing.wait)
			s.slots[c.Job] = existing
			s.timeline.set(existing)
		case existing == nil:
			continue
		case !c.Wanted:
			s.drop(existing)
			continue
		}
		wakes := s.watches > 0 && c.Pace.Wakes() && !existing.pace.Wakes() // its partitions are needed
		existing.unwanted, existing.pace, existing.tenants = false, c.Pace, c.Tenants
		if !c.Pace.Wakes() {
			s.unwatch(existing, nil)
		}
		s.advance(existing, now)
		if c.Soon || wakes {
			soon = append(soon, existing)
		}
	}
	s.hasten(soon, now)
}

// advance makes a topic that is needed more often than before due as if it always had been.
func (s *schedule) advance(one *slot, now time.Time) {
	wait := s.waitOf(one)
	if one.state != onTimeline || wait >= one.wait || one.failures > 0 {
		return
	}
	one.due = following(one.due.Add(wait-one.wait), wait, now)
	one.wait = wait
	s.timeline.set(one)
}

// waitOf is the time between two fetches of a job that does not fail.
func (s *schedule) waitOf(one *slot) time.Duration {
	switch one.pace {
	case backlog.AtRest:
		return s.pace.rest
	case backlog.Quick:
		if !one.empty || !one.watched.isComplete() {
			return s.pace.quick
		}
	case backlog.Usual, backlog.Waking:
	}
	return s.pace.after(one.job.Kind, 0)
}

// drop removes a job that is no longer wanted, at once or when its fetch has ended.
func (s *schedule) drop(one *slot) {
	s.unwatch(one, nil)
	if one.state != onTimeline {
		one.unwanted, one.rerun = true, false
		if one.stop != nil {
			one.stop()
		}
		return
	}
	heap.Remove(&s.timeline, one.position-1)
	delete(s.slots, one.job)
}

// remove forgets a job that was dropped while it was queued.
func (s *schedule) remove(one *slot) {
	one.state = onTimeline
	delete(s.slots, one.job)
}

// maxAtOnce is the maximum number of jobs of a kind in a lane that become due in one tick: 100 requests of a few
// milliseconds each are over quickly. A start with 10 000 topics has more.
const maxAtOnce = 100

// hasten makes jobs due at once; if there are many, the rest is spread over the interval.
func (s *schedule) hasten(slots []*slot, now time.Time) {
	type group struct {
		lane lane
		kind backlog.JobKind
	}
	counts := map[group]int{}
	for _, one := range slots {
		switch one.state {
		case queued:
		case running:
			one.rerun = true
		case onTimeline:
			due := now
			g := group{laneOf(one.job), one.job.Kind}
			if counts[g]++; counts[g] > maxAtOnce {
				due = now.Add(time.Duration(s.pace.jitter() * float64(s.pace.interval)))
			}
			if due.Before(one.due) {
				one.due, one.hastened = due, due.Equal(now)
				s.timeline.set(one)
			}
		}
	}
}

func (s *schedule) enqueue(now time.Time) {
	for len(s.timeline) > 0 && !s.timeline[0].due.After(now) {
		one := s.timeline[0]
		heap.Pop(&s.timeline)
		one.state = queued
		lane := laneOf(one.job)
		if s.lines[lane] == nil {
			s.lines[lane] = newLine()
		}
		s.lines[lane].add(one)
	}
}

// start returns the jobs to fetch now, up to the limit of each lane.
func (s *schedule) start(perCluster, workloads int) []backlog.Job {
	var jobs []backlog.Job
	for lane, line := range s.lines {
		places := perCluster
		switch {
		case lane.workloads:
			places = workloads
		case lane.watches:
			places = s.watches
		}
		for one := line.next(places, s.remove); one != nil; one = line.next(places, s.remove) {
			one.state = running
			jobs = append(jobs, one.job)
		}
		if line.isEmpty() {
			delete(s.lines, lane)
		}
	}
	return jobs
}

// late is the delay of a fetch that starts now, after it was due: jobs wait while their lane is full.
func (s *schedule) late(j backlog.Job, now time.Time) time.Duration {
	return max(0, now.Sub(s.slots[j].due))
}

func (s *schedule) finish(j backlog.Job, err error, now time.Time) {
	one := s.slots[j]
	s.lines[laneOf(j)].release(one)
	if one.stop != nil {
		one.stop()
		one.stop = nil
	}
	if one.unwanted {
		delete(s.slots, j)
		return
	}
	refused := refusal(err)
	switch {
	case err == nil:
		one.failures = 0
	case j.Kind == backlog.WatchKind && refused != nil:
		one.failures = refusals
	case backlog.Authoritative(err) && j.Kind != backlog.WatchKind:
		one.failures = 0 // Pulsar answers: fetch again at the usual pace
	default:
		one.failures++
	}
	switch {
	case one.topic == nil:
	case err == nil:
		s.watching(j, false, now)
	default:
		one.topic.watched[j] = watching{refused: refused}
	}
	again := one.rerun && err == nil
	switch one.due = s.next(one, now); {
	case again:
		one.due = now
	case one.message:
		one.due = now.Add(watchAgain)
	}
	one.hastened, one.rerun, one.message, one.state = again, false, false, onTimeline
	s.timeline.set(one)
}

// next is the next due time of the job after now, whenever the last fetch was. A failure starts a new series of due
// times. So does a hastened job, up to half a topic's interval early: many jobs may have been hastened at the same
// time, and a rate over a shorter time is noisy. So does a slower pace, since many topics may come to rest together.
func (s *schedule) next(one *slot, now time.Time) time.Time {
	if one.failures > 0 {
		return now.Add(s.pace.after(one.job.Kind, one.failures))
	}
	wait, before := s.waitOf(one), one.wait
	one.wait = wait
	due := one.due.Add(wait)
	switch {
	case wait > before:
		due = due.Add(-time.Duration(s.pace.jitter() * float64(wait-before)))
	case one.hastened:
		early := min(s.pace.interval/2, wait/2, due.Sub(now))
		due = due.Add(-time.Duration(s.pace.jitter() * float64(max(0, early))))
	}
	return following(due, wait, now)
}

// following is the first time after now in a series of due times, of which due is one.
func following(due time.Time, wait time.Duration, now time.Time) time.Time {
	if late := now.Sub(due); late >= 0 {
		return now.Add(wait - late%wait)
	}
	return due
}

// timeline has slots in the order in which they are due. It implements heap.Interface.
type timeline []*slot

// set adds the slot, or moves it after a change of due.
func (t *timeline) set(one *slot) {
	if one.position == 0 {
		heap.Push(t, one)
		return
	}
	heap.Fix(t, one.position-1)
}

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].due.Before(t[j].due) }

func (t timeline) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].position, t[j].position = i+1, j+1
}

func (t *timeline) Push(x any) {
	one, _ := x.(*slot) // only set adds slots
	*t = append(*t, one)
	one.position = len(*t)
}

func (t *timeline) Pop() any {
	last := len(*t) - 1
	one := (*t)[last]
	(*t)[last] = nil
	*t = (*t)[:last]
	one.position = 0
	return one
}
