// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll_test

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/poll"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const (
	// perReplica is the capacity of one replica in messages per second, prefetched the most that it holds.
	perReplica, prefetched = 50, 100
	startSeconds           = 20
	partitionCount         = 4
	subscriptionName       = function
)

// pulsarModel is a topic, its subscription and the replicas that a policy sets, in steps of a second; an autoscaler
// follows each decision at once. Its answers pass through falsify, if set.
type pulsarModel struct {
	load    func(second int) float64
	falsify func(second int, detail backlog.Detail, said backlog.TopicSample) (backlog.TopicSample, error)
	random  *rand.Rand

	// mu guards the rest.
	mu        sync.Mutex
	start     time.Time
	second    int
	published [partitionCount]int64
	finished  int64
	queue     int64
	replicas  []*modelReplica
	fetches   int
}

type modelReplica struct {
	id        string
	from      int // second
	processed int64
}

func newPulsarModel(load func(second int) float64, replicas int) *pulsarModel {
	m := &pulsarModel{load: load, random: rand.New(rand.NewPCG(1, 2)), start: time.Now()}
	m.scale(replicas)
	for _, r := range m.replicas {
		r.from = 0
	}
	return m
}

func (m *pulsarModel) scale(replicas int) {
	for len(m.replicas) < replicas {
		m.replicas = append(m.replicas, &modelReplica{
			id: strconv.Itoa(len(m.replicas)) + "@" + strconv.Itoa(m.second), from: m.second + startSeconds,
		})
	}
	m.replicas = m.replicas[:replicas]
}

// advance runs the model up to the current second.
func (m *pulsarModel) advance() {
	for now := int(time.Since(m.start).Seconds()); m.second < now; m.second++ {
		for i := range m.published {
			arriving := m.poisson(m.load(m.second) / partitionCount)
			m.published[i] += arriving
			m.queue += arriving
		}
		running := m.running()
		for i, r := range running {
			done := min(perReplica, m.queue/int64(len(running)-i))
			r.processed += done
			m.finished += done
			m.queue -= done
		}
	}
}

// poisson is a count of independent messages, by its normal approximation.
func (m *pulsarModel) poisson(mean float64) int64 {
	return max(0, int64(mean+m.random.NormFloat64()*sqrt(mean)+m.random.Float64()))
}

func (m *pulsarModel) running() (running []*modelReplica) {
	for _, r := range m.replicas {
		if r.from <= m.second {
			running = append(running, r)
		}
	}
	return running
}

func (m *pulsarModel) Fetch(_ context.Context, _ backlog.Topic, request backlog.Request) (backlog.TopicSample, error) {
	at := time.Now()
	time.Sleep(20 * time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	m.fetches++
	running := m.running()
	unacked := min(m.queue, int64(len(running)*prefetched))
	said := backlog.TopicSample{At: at, Detail: request.Detail}
	for i, published := range m.published {
		s := backlog.SubscriptionSample{
			Name: subscriptionName, Type: backlog.Shared, BacklogEntries: part(m.queue, i), UnackedMessages: part(unacked, i),
			DeliveredMessages: part(m.finished+unacked, i),
		}
		if request.Detail.Has(backlog.Consumers) {
			for _, r := range running {
				s.Consumers = append(s.Consumers, backlog.ConsumerSample{ID: r.id, Name: r.id, MeanBatch: 1})
			}
		}
		said.Partitions = append(said.Partitions, backlog.PartitionSample{
			Index: i, PublishedMessages: published, AddedEntries: &published,
			Subscriptions: []backlog.SubscriptionSample{s},
		})
	}
	if m.falsify == nil {
		return said, nil
	}
	return m.falsify(m.second, request.Detail, said)
}

func (m *pulsarModel) AddEntries(_ context.Context, _ backlog.Topic, said backlog.TopicSample) backlog.TopicSample {
	said.Detail |= backlog.Entries
	return said
}

func (m *pulsarModel) FetchInstances(context.Context, backlog.Workload) (backlog.InstancesSample, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance()
	said := backlog.InstancesSample{At: time.Now()}
	for _, r := range m.running() {
		calls, busy := r.processed, time.Duration(r.processed)*time.Second/perReplica*98/100
		said.Instances = append(said.Instances, backlog.InstanceSample{
			ID: r.id, Received: calls, Processed: calls, Calls: &calls, BusyTime: &busy, FailedCallsCounted: true,
		})
	}
	return said, nil
}

// part of a total on one of the partitions.
func part(total int64, i int) int64 { return (total + int64(i)) / partitionCount }

func sqrt(x float64) float64 {
	guess := max(x, 1)
	for range 30 {
		guess = (guess + x/guess) / 2
	}
	return guess
}

// moment is the decision at a poll.
type moment struct {
	second   int
	decision policy.Decision
	state    policy.State
	reading  backlog.Reading
	failure  error
}

// history has the decision at each poll, and the number of second requests.
type history struct {
	moments     []moment
	implausible map[string]int
	fetches     int
}

// decide runs a poller and a policy on the model for some time.
func (m *pulsarModel) decide(t *testing.T, length time.Duration, minReplicas int32) history {
	t.Helper()
	store := newStore(t)
	subscription := backlog.NewSubscription(cluster(), subscriptionName, orders)
	subscription.Workload = backlog.Object{Name: "workload"}
	state := policy.State{Capacity: fixture.Capacity(perReplica)}
	state.Capacity.Coverage = 0.98
	h := history{implausible: map[string]int{}}
	reconcile := func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		in := fixture.Input(int32(len(m.replicas)), backlog.Reading{})
		in.Now, in.Spec.MinReplicas = time.Now(), &minReplicas
		in.Reading, in.Unknown = store.Read(subscription, in.Now)
		var decision policy.Decision
		decision, state = policy.Decide(in, state)
		m.advance()
		m.scale(int(decision.Replicas))
		h.moments = append(h.moments, moment{m.second, decision, state, in.Reading, in.Unknown})
	}
	run(t, poll.Config{
		Store: store, Source: m, Interval: 10 * time.Second, Timeout: 3 * time.Second, PerCluster: 4,
		Jitter: func() float64 { return 0.5 }, Updated: func(backlog.Topic) {}, Instances: m, Workloads: 2,
		Lister:      newFakeCluster(),
		Implausible: func(result string) { h.implausible[result]++ }, // the model has one topic
	}, func(*poll.Poller) {
		store.Track("me", subscription)
		time.Sleep(time.Second)
		for began := time.Now(); time.Since(began) < length; time.Sleep(time.Second) {
			reconcile()
		}
	})
	h.fetches = m.fetches
	return h
}

// modelled are the decisions on a model in virtual time.
func modelled(t *testing.T, length time.Duration, minReplicas int32, model func() *pulsarModel) (h history) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { h = model().decide(t, length, minReplicas) })
	require.NotEmpty(t, h.moments)
	return h
}
