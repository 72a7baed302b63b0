// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// queuedSchedule has the jobs of each tenant, by name, all due at the same time.
func queuedSchedule(now time.Time, jobs map[string][]string) *schedule {
	s := newSchedule(pace{
		interval: 10 * time.Second, jitter: func() float64 { return 0 },
		after: func(backlog.JobKind, int) time.Duration { return 10 * time.Second },
	})
	asking := map[string][]string{}
	for tenant, names := range jobs {
		for _, name := range names {
			asking[name] = append(asking[name], tenant)
		}
	}
	for name, tenants := range asking {
		s.apply([]backlog.Change{{Job: topicJob(name), Wanted: true, Soon: true, Tenants: tenants}}, now)
	}
	s.enqueue(now)
	return s
}

func topicJob(name string) backlog.Job {
	return backlog.TopicJob(backlog.Topic{Cluster: backlog.Cluster{AdminURL: "http://pulsar:8080"}, Name: name})
}

func names(prefix string, count int) (all []string) {
	for i := range count {
		all = append(all, fmt.Sprint(prefix, i))
	}
	return all
}

func TestTenantsTakeTurns(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := queuedSchedule(now, map[string][]string{"many": names("m", 100), "few": names("f", 3), "one": {"o0"}})
	started := map[byte]int{}
	for _, j := range s.start(7, 1) { // with six, who was first would matter
		started[j.Name[0]]++
	}
	require.Equal(t, map[byte]int{'m': 3, 'f': 3, 'o': 1}, started)
}

func TestASharedJobIsFetchedInTheFirstTurnOfThoseThatAsk(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	shared := append(names("m", 100), "shared")
	s := queuedSchedule(now, map[string][]string{"many": shared, "one": {"shared"}})
	started := map[string]int{}
	for range 200 {
		for _, j := range s.start(2, 1) {
			started[j.Name]++
			if len(started) <= 2 {
				continue
			}
			s.finish(j, nil, now)
		}
		if len(started) == 2 {
			require.Contains(t, started, "shared")
		}
		for name := range started {
			if s.slots[topicJob(name)].state == running {
				s.finish(topicJob(name), nil, now)
			}
		}
	}
	require.Len(t, started, 101)
	for name, times := range started {
		require.Equal(t, 1, times, name)
	}
	require.Empty(t, s.start(2, 1))
	require.Empty(t, s.lines)
}

// Of 100 jobs that are due every 10 s, 4 can be done in a second.
func TestWhatFailedOnceHasItsTurnInALineThatIsNeverEmpty(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := queuedSchedule(now, map[string][]string{"many": names("m", 100)})
	failed := s.start(4, 1)
	for _, j := range failed {
		s.finish(j, errors.New("failed"), now)
	}
	again := map[string]bool{}
	for range 60 {
		now = now.Add(time.Second)
		s.enqueue(now)
		for _, j := range s.start(4, 1) {
			again[j.Name] = true
			s.finish(j, nil, now)
		}
	}
	for _, j := range failed {
		require.True(t, again[j.Name], "%s waits for good", j.Name)
	}
}

func TestWhatFailedLastHoldsAQuarterOfThePlaces(t *testing.T) {
	const places = 16
	now := time.Unix(1_800_000_000, 0)
	s := queuedSchedule(now, map[string][]string{"many": names("m", 100)})
	fail := func(jobs []backlog.Job) {
		for _, j := range jobs {
			s.finish(j, errors.New("failed"), now)
		}
	}
	for range 7 { // all of them once
		fail(s.start(places, 1))
	}
	now = now.Add(10 * time.Second)
	s.enqueue(now)
	held := s.start(places, 1)
	require.Len(t, held, places/failingShare)
	require.Empty(t, s.start(places, 1), "until one of them ends")
	s.apply([]backlog.Change{{Job: topicJob("new"), Wanted: true, Soon: true, Tenants: []string{"many"}}}, now)
	s.enqueue(now)
	require.Equal(t, []backlog.Job{topicJob("new")}, s.start(places, 1))
	fail(held)
	require.Len(t, s.start(places, 1), places/failingShare)
}
