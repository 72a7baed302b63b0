// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// learning is the trigger of metadata topic: orders, subscription: resize, latencyObjective: 30s.
func learning() Trigger {
	return Trigger{
		Object: scaledObject(), Subject: topicSubject(), Strategy: v1alpha1.StrategyCapacity,
		LatencyObjective: 30 * time.Second,
	}
}

// random is any reading of a pool of so many replicas.
func random(dice *rand.Rand, at time.Time, replicas int32) backlog.Reading {
	r := reading(at)
	ready := float64(dice.IntN(3) * dice.IntN(20_000))
	r.Total, r.Ready, r.Undispatched, r.Unacked = backlog.Known(
		ready), backlog.Known(ready), backlog.Known(ready), backlog.Known(0)
	r.LeastReady, r.LeastUndispatched, r.ExactAt = r.Ready, r.Undispatched, at
	r.PublishRate = backlog.Known(float64(dice.IntN(2) * dice.IntN(500)))
	r.ProcessRate = backlog.Known(float64(dice.IntN(2) * dice.IntN(500)))
	r.DeliveryRate = r.ProcessRate
	r.Consumers = backlog.Known(float64(replicas))
	if dice.IntN(10) == 0 {
		r.PublishRate = backlog.Unknown(backlog.ErrNoRate)
	}
	return r
}

const skewedPartitions = 12

// skewed are partitions of a reading, of which the first has more than its share.
func skewed(r backlog.Reading) []backlog.PartitionReading {
	ready, _ := r.Ready.Value()
	published, _ := r.PublishRate.Value()
	processed, _ := r.ProcessRate.Value()
	var all []backlog.PartitionReading
	for i := range skewedPartitions {
		share := float64(skewedPartitions-i) / (skewedPartitions * (skewedPartitions + 1) / 2)
		all = append(all, backlog.PartitionReading{
			Index: i, Ready: backlog.Known(ready * share), PublishRate: backlog.Known(published * share),
			ProcessRate: backlog.Known(processed * share), Consumers: backlog.Known(1),
		})
	}
	return all
}

func TestDecisionsAreThoseOfPackagePolicy(t *testing.T) {
	different := map[bool]map[int32]bool{false: {}, true: {}} // by whether it is Failover
	for seed := range uint64(20) {
		dice := rand.New(rand.NewPCG(seed, 1))
		w := newWorld()
		s := w.server(t)
		require.Equal(t, codes.Unavailable, codeOf(s.answer(learning(), w.now).err), "it begins to learn")

		objective := metav1.Duration{Duration: 30 * time.Second}
		least, none := dice.Int32N(3), int32(0)
		spec := v1alpha1.AutoscalingPolicySpec{
			MinReplicas: &least, MaxReplicas: 20, LatencyObjective: objective,
			Behavior: &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{CooldownPeriodSeconds: &none}},
		}
		var state policy.State
		var decision policy.Decision
		held, current := false, least
		for step := range 200 {
			w.now = w.now.Add(10 * time.Second)
			w.replicas[scaledObject()] = Replicas{Least: least, Most: 20, Current: current}
			seen := random(dice, w.now, current)
			if seed%2 == 1 {
				seen.Type, seen.Partitions = backlog.Failover, skewedPartitions
				w.partitions = map[Subject][]backlog.PartitionReading{topicSubject(): skewed(seen)}
			}
			w.readings[topicSubject()] = seen
			w.unread = nil
			if dice.IntN(10) == 0 {
				w.unread = errBrokerDown
			}
			s.decide(news{all: true}, w.now)

			in := policy.Input{
				Now: w.now, Spec: spec, CurrentReplicas: current, FreshFor: 30 * time.Second,
				Reading: w.readings[topicSubject()], Unknown: w.unread, Partitions: w.partitions[topicSubject()],
			}
			if w.unread != nil {
				in.Reading, in.Partitions = backlog.Reading{}, nil
			}
			var made policy.Decision
			made, state = policy.Decide(in, state)
			if w.unread == nil {
				decision, held = made, true
			}
			answer := s.answer(learning(), w.now)
			if !held {
				require.Error(t, answer.err)
				continue
			}
			require.NoError(t, answer.err)
			want := decision.Replicas
			if w.unread != nil {
				want = max(want, current) // loss of signal never lowers replicas
			}
			require.Equal(t, float64(want), answer.sample.Value, "seed %d, step %d: %s", seed, step, decision.Equation)
			require.Equal(t, want > 0, answer.sample.Active)
			different[seed%2 == 1][decision.Replicas] = true
			if dice.IntN(3) == 0 { // KEDA follows, sooner or later
				current = decision.Replicas
			}
		}
	}
	require.Greater(t, len(different[false]), 5, "that decides nothing")
	require.Greater(t, len(different[true]), 5, "that decides nothing")
}

func TestDecisionsAreMadeBesideRequests(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, s *Server, _ func()) {
		counted := &countingSignals{world: w}
		s.config.Signals = counted
		w.change(func() {
			w.replicas[scaledObject()] = Replicas{Most: 100, Current: 4}
			w.readings[topicSubject()] = reading(time.Now())
		})
		of := ref("topic", "orders", "subscription", "resize")
		_, err := s.IsActive(t.Context(), of)
		require.Equal(t, codes.Unavailable, status.Code(err))
		require.ErrorContains(t, err, "nothing is decided yet")
		require.Equal(t, 1, counted.count(), "at once, by Run")
		answer, err := s.IsActive(t.Context(), of)
		require.NoError(t, err)
		require.True(t, answer.GetResult())

		const requests = 1000
		for range requests {
			_, err := value(t, s, of)
			require.NoError(t, err)
		}
		require.Equal(t, 1, counted.count(), "no request reads")
		time.Sleep(time.Minute)
		require.InDelta(t, 1+6, counted.count(), 1, "without news every third of FreshFor, 10 s")

		before := counted.count()
		s.Poked(backlog.Topic{Name: "persistent://public/default/orders"})
		time.Sleep(leastPause)
		require.Equal(t, before+1, counted.count(), "with news at once")

		time.Sleep(forgetAfter + forgetEvery)
		before = counted.count()
		time.Sleep(time.Hour)
		require.Equal(t, before, counted.count(), "nobody asks any more")
		_, err = value(t, s, of)
		require.Equal(t, codes.Unavailable, status.Code(err), "what was learned is forgotten")
	})
}

func TestLearningHoldsWhatItDecided(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world, s *Server, _ func()) {
		of := ref("topic", "orders", "subscription", "resize")
		active := open(t, nil, of, s.StreamIsActive)
		require.Empty(t, active.now(), "there is no such ScaledObject yet")
		w.change(func() {
			w.replicas[scaledObject()] = Replicas{Most: 100, Current: 0}
			w.readings[topicSubject()] = reading(time.Now())
		})
		s.Changed()
		time.Sleep(leastPause)
		require.Equal(t, []string{"true"}, active.now())
		decided, err := value(t, s, of)
		require.NoError(t, err)

		w.change(func() {
			w.unread = errBrokerDown
			w.replicas[scaledObject()] = Replicas{Most: 100, Current: 1}
		})
		time.Sleep(30 * time.Minute)
		got, err := value(t, s, of)
		require.NoError(t, err)
		require.Equal(t, decided.GetMetricValueFloat(), got.GetMetricValueFloat())
		time.Sleep(30*time.Minute + s.config.FreshFor) // known until the next decision failed
		_, err = value(t, s, of)
		require.ErrorContains(t, err, "spec.fallback")
		require.Equal(t, []string{"true"}, active.now())
	})
}

func TestALostSubscriptionWakesOneReplica(t *testing.T) {
	f := facts{noReading: fmt.Errorf("%w: resize", backlog.ErrSubscriptionNotFound), replicas: Replicas{Most: 10}}
	decision, _, err := learn(learning(), f, 30*time.Second, policy.State{}, noon())
	require.NoError(t, err)
	require.EqualValues(t, 1, decision.Replicas)
	f.replicas.Current = 3
	_, _, err = learn(learning(), f, 30*time.Second, policy.State{}, noon())
	require.ErrorIs(t, err, errUnknown, "and says nothing of those that run")
}

func TestDecisionsThatNobodyRenewsCountForNothing(t *testing.T) {
	w := newWorld()
	s := w.server(t)
	s.answer(learning(), w.now)
	w.replicas[scaledObject()] = Replicas{Most: 10, Current: 2}
	w.readings[topicSubject()] = reading(w.now)
	s.decide(news{all: true}, w.now)
	require.NoError(t, s.answer(learning(), w.now).err)
	w.pass(31 * time.Second)
	answer := s.answer(learning(), w.now)
	require.Equal(t, held, answer.standing)
	require.Equal(t, "nothing was decided for 31s", answer.why)
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory(time.Hour, 3)
	now := noon()
	of := func(i int) Trigger { return Trigger{Subject: Subject{Policy: fmt.Sprint(i)}} }
	known := func(i int) bool {
		_, found := m.entries[of(i)]
		return found
	}
	for i := range 3 {
		m.settle(of(i), Sample{Value: 1}, nil, now)
	}
	m.settle(of(0), Sample{}, errBrokerDown, now) // asked for again
	m.settle(of(3), Sample{}, nil, now)
	require.Len(t, m.entries, 3)
	require.Equal(t, 3, m.recent.Len())
	require.False(t, known(1), "it was asked for least recently")
	require.True(t, known(0))
	require.Equal(t, 1, m.held())

	_, _, err := m.decision(of(3), now, time.Minute)
	require.Error(t, err)
	m.forget(now.Add(forgetAfter - 1))
	require.Len(t, m.lessons(), 1)
	m.forget(now.Add(forgetAfter))
	require.Empty(t, m.lessons(), "what was learned is forgotten first")
	require.Len(t, m.entries, 3)
	require.Zero(t, m.held(), "nobody asks for it")
	m.forget(now.Add(time.Hour))
	require.Empty(t, m.entries)
	require.Zero(t, m.recent.Len())
}
