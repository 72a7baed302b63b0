// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
)

// street is a Pulsar cluster behind one address, and pods, that answer in 20 ms. What has "stuck" in its name never
// answers, and what has "invented" fails at once.
type street struct {
	topics []string // of every listing

	// mu guards good, the times of the victim's good answers.
	mu   sync.Mutex
	good []time.Time
}

func (s *street) answer(ctx context.Context, name string, within time.Duration) error {
	at := time.Now()
	wait := 20 * time.Millisecond
	if strings.Contains(name, "stuck") {
		wait = within
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return fmt.Errorf("%w: timed out", backlog.ErrUnreachable)
	}
	switch {
	case strings.Contains(name, "stuck"):
		return fmt.Errorf("%w: timed out", backlog.ErrUnreachable)
	case strings.Contains(name, "invented"):
		return fmt.Errorf("%w: %s", backlog.ErrTopicNotFound, name)
	case strings.Contains(name, "victim"):
		s.mu.Lock()
		defer s.mu.Unlock()
		s.good = append(s.good, at)
	}
	return nil
}

func (s *street) Fetch(ctx context.Context, t backlog.Topic, request backlog.Request) (backlog.TopicSample, error) {
	at := time.Now()
	return sampleOf(at, request.Detail, 0), s.answer(ctx, t.Name, 3*time.Second)
}

func (s *street) AddEntries(_ context.Context, _ backlog.Topic, sample backlog.TopicSample) backlog.TopicSample {
	return sample
}

func (s *street) List(_ context.Context, _ backlog.Namespace, add func(topic string)) error {
	for _, topic := range s.topics {
		add(topic)
	}
	return nil
}

func (s *street) FetchInstances(ctx context.Context, of backlog.Workload) (backlog.InstancesSample, error) {
	at := time.Now()
	within := 2 * time.Second // pods at once
	if strings.Contains(of.String(), "of-10") {
		within = 6 * time.Second // four at once
	}
	err := s.answer(ctx, of.String(), within)
	return backlog.InstancesSample{At: at, Instances: []backlog.InstanceSample{{ID: "0"}}}, err
}

// longestGap is the longest time without a good answer for the victim until the end.
func (s *street) longestGap(from, to time.Time) (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, at := range append(s.good, to) {
		longest, from = max(longest, at.Sub(from)), at
	}
	return longest
}

// neighbour is what another namespace asks for.
type neighbour func(t *testing.T, s *street, store *backlog.Store)

func topicsNamed(name string, count int) neighbour {
	return func(_ *testing.T, _ *street, store *backlog.Store) {
		for i := range count {
			store.Track(fmt.Sprint("neighbour/", i), backlog.NewSubscription(cluster(), function,
				fmt.Sprint("persistent://public/default/", name, "-", i)))
		}
	}
}

func patternOn(count int) neighbour {
	return func(t *testing.T, s *street, store *backlog.Store) {
		for i := range count {
			s.topics = append(s.topics, fmt.Sprint("persistent://public/default/wide-", i))
		}
		store.Track("neighbour/pattern", matching(t, "persistent://public/default/wide-.*"))
	}
}

func silentWorkloads(count, pods int) neighbour {
	return func(_ *testing.T, _ *street, store *backlog.Store) {
		for i := range count {
			one := backlog.NewSubscription(cluster(), function, fmt.Sprint("persistent://public/default/quick-", i))
			stuck := backlog.Object{Namespace: "neighbour", Name: fmt.Sprint("stuck-", i, "-of-", pods)}
			one.Workload = stuck
			store.Track(backlog.Owner(stuck.Namespace, stuck.Name), one)
		}
	}
}

func credentials(count int) neighbour {
	return func(_ *testing.T, _ *street, store *backlog.Store) {
		for i := range count {
			for j := range 5 {
				with := backlog.Cluster{AdminURL: cluster().AdminURL, Access: fmt.Sprint("token-", i)}
				store.Track(fmt.Sprint("neighbour/", i, "-", j), backlog.NewSubscription(with, function,
					fmt.Sprint("persistent://public/default/topic-", j)))
			}
		}
	}
}

func TestNoNeighbourMakesReadingsRare(t *testing.T) {
	tests := map[string]neighbour{
		"a pattern on 20,000 topics":        patternOn(20_000),
		"a pattern on 70,000 topics":        patternOn(70_000),
		"300 stuck topics":                  topicsNamed("stuck", 300),
		"900 stuck topics":                  topicsNamed("stuck", 900),
		"600 silent workloads with 2 pods":  silentWorkloads(600, 2),
		"600 silent workloads with 10 pods": silentWorkloads(600, 10),
		"1,100 credentials":                 credentials(1_100),
		"21,000 invented topics":            topicsNamed("invented", 21_000),
	}
	for name, neighbour := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, s := newStore(t), &street{}
				run(t, poll.Config{
					Store: store, Source: s, Interval: 10 * time.Second, Timeout: 9 * time.Second, PerCluster: 16,
					Jitter: func() float64 { return 0.5 }, Updated: func(backlog.Topic) {}, Lister: s, Instances: s, Workloads: 16,
				}, func(*poll.Poller) {
					neighbour(t, s, store)
					time.Sleep(time.Second)
					subscription := backlog.NewSubscription(cluster(), function, "persistent://public/default/victim")
					if strings.Contains(name, "workloads") {
						subscription = backlog.NewSubscription(cluster(), function, "persistent://public/default/other")
						subscription.Workload = backlog.Object{Namespace: "victim", Name: "workload"}
					}
					began := time.Now()
					store.Track("victim/policy", subscription)
					time.Sleep(3 * time.Minute)
					gap := s.longestGap(began, time.Now())
					t.Logf("the longest gap beside %s is %s", name, gap)
					require.LessOrEqual(t, gap, 20*time.Second)
				})
			})
		})
	}
}
