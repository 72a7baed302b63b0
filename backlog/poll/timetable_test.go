// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// timetable runs the Poller and the Store against a schedule: jobs are added, removed and hastened while they wait, and
// run and fail. It knows which jobs may start when, and checks that none is forgotten.
type timetable struct {
	*testing.T
	random   *rand.Rand
	schedule *schedule
	now      time.Time
	jobs     []backlog.Job
	touched  backlog.Job
	wanted   map[backlog.Job]bool
	ends     map[backlog.Job]time.Time // of running jobs
	hastened map[backlog.Job]time.Time // since it began the last time
	rested   map[backlog.Job]time.Time // since when it could be waited for
	back     map[backlog.Job]bool      // wanted again, so it may stand in line still
	row      map[backlog.Job]time.Time // not before, unless hastened
}

const (
	timetableInterval = 10 * time.Second
	timetablePlaces   = 2
	// timetablePatience is an interval with its jitter, and the time of a queue of ten jobs of up to 1.5 s each.
	timetableQueue    = 8 * time.Second
	timetablePatience = 11*time.Second + timetableQueue
)

func newTimetable(t *testing.T, seed uint64) *timetable {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	w := &timetable{
		T:      t,
		random: random,
		now: time.Unix(0,
			0),
		wanted:   map[backlog.Job]bool{},
		ends:     map[backlog.Job]time.Time{},
		hastened: map[backlog.Job]time.Time{},
		rested:   map[backlog.Job]time.Time{},
		back:     map[backlog.Job]bool{},
		row:      map[backlog.Job]time.Time{},
	}
	w.schedule = newSchedule(pace{
		interval: timetableInterval, jitter: random.Float64,
		after: func(_ backlog.JobKind, failures int) time.Duration {
			if failures == 0 {
				return timetableInterval
			}
			return time.Duration(float64(timetableInterval) * (0.9 + 0.2*random.Float64()))
		},
	})
	for i := range 10 {
		cluster := backlog.Cluster{AdminURL: fmt.Sprint("http://", i%2)}
		w.jobs = append(
			w.jobs,
			backlog.TopicJob(backlog.Topic{Cluster: cluster, Name: fmt.Sprint(i)}),
			backlog.WorkloadJob(backlog.Object{Name: fmt.Sprint(i)}),
			backlog.NamespaceJob(backlog.Namespace{Cluster: cluster, Name: fmt.Sprint(i)}),
		)
	}
	w.touched = w.jobs[0]
	return w
}

// turn is one tick of the Poller.
func (w *timetable) turn() {
	w.now = w.now.Add(tick)
	for _, j := range w.jobs {
		if end, runs := w.ends[j]; runs && !end.After(w.now) {
			w.finish(j)
		}
	}
	var changes []backlog.Change
	if w.random.IntN(5) == 0 { // of each job once, as the store does
		if w.random.IntN(2) == 0 { // or again of the last one
			w.touched = w.jobs[w.random.IntN(len(w.jobs))]
		}
		changes = append(changes, w.change(w.touched))
	}
	w.schedule.apply(changes, w.now)
	w.schedule.enqueue(w.now)
	places := map[lane]int{}
	for _, j := range w.schedule.start(timetablePlaces, timetablePlaces) {
		w.start(j)
	}
	for j := range w.ends {
		places[laneOf(j)]++
		require.LessOrEqual(w, places[laneOf(j)], timetablePlaces)
	}
	for j, since := range w.rested {
		require.LessOrEqual(w, w.now.Sub(since), timetablePatience, "%v is forgotten", j)
		if soon, hastened := w.hastened[j]; hastened {
			require.LessOrEqual(w, w.now.Sub(soon), timetableQueue, "%v could not wait", j)
		}
	}
}

func (w *timetable) change(j backlog.Job) backlog.Change {
	c := backlog.Change{Job: j, Wanted: w.wanted[j], Soon: w.random.IntN(4) == 0}
	if !c.Wanted {
		w.back[j] = true
	}
	if w.random.IntN(2) == 0 {
		c.Wanted = !c.Wanted
	}
	if w.wanted[j] = c.Wanted; !c.Wanted {
		delete(w.rested, j)
		delete(w.hastened, j)
		return c
	}
	if _, already := w.hastened[j]; c.Soon && !already {
		w.hastened[j] = w.now
	}
	if _, runs := w.ends[j]; !runs {
		if _, waits := w.rested[j]; !waits {
			w.rested[j] = w.now
		}
	}
	return c
}

func (w *timetable) start(j backlog.Job) {
	require.True(w, w.wanted[j], "%v is not wanted", j)
	require.NotContains(w, w.ends, j, "%v runs already", j)
	if until, known := w.row[j]; known && w.hastened[j].IsZero() && !w.back[j] {
		require.False(w, w.now.Before(until), "%v is early", j)
	}
	delete(w.rested, j)
	delete(w.hastened, j)
	delete(w.back, j)
	w.ends[j] = w.now.Add(time.Duration(w.random.Int64N(int64(1500 * time.Millisecond))))
}

func (w *timetable) finish(j backlog.Job) {
	delete(w.ends, j)
	var err error
	if w.random.IntN(5) == 0 {
		err = errors.New("failed")
		delete(w.hastened, j) // each failed job waits
	}
	if _, soon := w.hastened[j]; soon {
		w.hastened[j] = w.now
	}
	slot := *w.schedule.slots[j]
	w.schedule.finish(j, err, w.now)
	w.follow(slot, err)
	if w.wanted[j] {
		w.rested[j] = w.now
	}
}

// follow computes the next time of a job that ran.
func (w *timetable) follow(ran slot, err error) {
	delete(w.row, ran.job)
	if _, soon := w.hastened[ran.job]; soon || !w.wanted[ran.job] {
		return
	}
	due := w.schedule.slots[ran.job].due
	switch {
	case err != nil:
		require.GreaterOrEqual(w, due.Sub(w.now), timetableInterval*9/10)
	case ran.hastened:
		require.True(w, due.After(w.now))
		require.GreaterOrEqual(w, due.Sub(ran.due), timetableInterval/2)
	default:
		want := ran.due
		for !want.After(w.now) {
			want = want.Add(timetableInterval)
		}
		require.Equal(w, want, due)
	}
	require.LessOrEqual(w, due.Sub(w.now), timetableInterval*11/10)
	w.row[ran.job] = due
}

func TestJobsThatComeAndGoRunInTimeAndNeverTwiceAtOnce(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			w := newTimetable(t, seed)
			for range 4000 {
				w.turn()
			}
			for _, j := range w.jobs {
				w.schedule.apply([]backlog.Change{{Job: j}}, w.now)
			}
			w.schedule.start(timetablePlaces, timetablePlaces)
			for j := range w.ends {
				w.schedule.finish(j, nil, w.now)
			}
			w.schedule.start(timetablePlaces, timetablePlaces)
			require.Empty(t, w.schedule.slots)
			require.Empty(t, w.schedule.timeline)
			require.Empty(t, w.schedule.lines)
		})
	}
}
