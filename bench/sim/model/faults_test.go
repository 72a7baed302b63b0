// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// counters are the sums over the samples of all topics.
func counters(t *testing.T, system *System) (published, delivered, entries, delayed int64) {
	t.Helper()
	for topic := range system.scenario.Topics() {
		sample, err := system.TopicSample(topic)
		require.NoError(t, err)
		for _, p := range sample.Partitions {
			published += p.PublishedMessages
			for _, s := range p.Subscriptions {
				delivered, entries, delayed = delivered+s.DeliveredMessages, entries+s.BacklogEntries, delayed+s.DelayedMessages
			}
		}
	}
	return published, delivered, entries, delayed
}

func TestEachTopicHasALoadOfItsOwn(t *testing.T) {
	s := scenario()
	s.More = []Curve{Constant(40), func(second float64) float64 { return 20 * float64(int(second)/100%2) }}
	system := New(s, 3)
	require.Len(t, s.Topics(), 3)
	before := make([]backlog.PartitionSample, 3)
	run(system, func(int) (int, bool) {
		for topic := range s.Topics() {
			sample, err := system.TopicSample(topic)
			require.NoError(t, err)
			require.Len(t, sample.Partitions, 1)
			now, last := sample.Partitions[0], before[topic]
			require.GreaterOrEqual(t, now.PublishedMessages, last.PublishedMessages)
			if len(last.Subscriptions) > 0 {
				require.GreaterOrEqual(t, now.Subscriptions[0].DeliveredMessages, last.Subscriptions[0].DeliveredMessages,
					"a counter never falls")
			}
			before[topic] = now
		}
		return 0, false
	})
	for topic, want := range []float64{60000, 24000, 6000} {
		require.InDelta(t, want, float64(before[topic].PublishedMessages), want/20)
	}
	published, delivered, entries, _ := counters(t, system)
	require.InDelta(t, system.score.Messages, float64(published), 0)
	require.InDelta(t, system.topics.delivered, float64(delivered), 3)
	require.InDelta(t, system.subscription.queued(), float64(entries), 3)
}

func TestTheBrokerDoesNotKnowDelayedMessagesThatArriveWithoutConsumers(t *testing.T) {
	s := scenario()
	s.Min, s.Initial, s.Delayed, s.Delay = 0, 0, 1, 200*time.Second
	system := New(s, 3)
	to(system, 99)
	_, _, entries, delayed := counters(t, system)
	require.InDelta(t, 10000, entries, 500)
	require.Zero(t, delayed, "they look like work")
	system.Scale(1)
	to(system, system.set.replicas[0].consumes)
	_, _, entries, delayed = counters(t, system)
	require.Equal(t, entries, delayed, "a consumer has the broker read them")
	to(system, 400)
	require.InDelta(t, 50*200, system.score.Finished, 1500, "the first are due at 200 s, and one replica works on them")
}

func TestOneReplicaGetsAllMessagesOfAHotKey(t *testing.T) {
	s := scenario()
	s.Type, s.HotKey, s.Initial, s.Rate, s.ReceiveQueue = backlog.KeyShared, Constant(0.8), 4, Constant(150), 100
	system := New(s, 3)
	run(system, still)
	require.InDelta(t, 50*600, system.set.replicas[0].processed, 4000, "all it can do")
	require.InDelta(t, 0.2*150*600, system.score.Finished-system.set.replicas[0].processed, 1500,
		"the others have the rest")
	require.InDelta(t, (0.8*150-50)*600, system.subscription.waiting[hotQueue].total, 4000)
	require.Less(t, system.Processable(), 500.0, "more replicas would not help")
}

func TestChangesReplaceOnePodAfterTheOther(t *testing.T) {
	s := scenario()
	s.RestartsOnScale, s.Initial, s.Rate = true, 6, Constant(1000)
	system := New(s, 3)
	to(system, 10)
	system.Scale(5)
	old := map[*replica]int{}
	for _, r := range system.set.replicas {
		old[r] = r.consumes
	}
	var order []int
	for system.Pods().Updating {
		system.Step()
		require.LessOrEqual(t, system.Pods().Unready, 1)
		for _, r := range system.set.replicas {
			if r.consumes != old[r] {
				old[r] = r.consumes
				order = append(order, r.number)
			}
		}
		require.Less(t, system.Second(), 500)
	}
	require.Equal(t, []int{4, 3, 2, 1, 0}, order, "the newest first")
	require.Positive(t, system.Score().Redelivered)
}

func TestScaleDownRemovesTheNewestAndRedeliversItsMessages(t *testing.T) {
	s := scenario()
	s.Rate = Constant(1000)
	system := New(s, 3)
	to(system, 60)
	held, waiting := system.set.replicas[2].queue.total, system.subscription.waiting[0].total
	require.InDelta(t, 1000, held, 60)
	system.Scale(2)
	require.Equal(t, 0, system.set.replicas[0].number)
	require.Equal(t, 1, system.set.replicas[1].number)
	require.InDelta(t, held, system.Score().Redelivered, dust)
	require.InDelta(t, waiting+held, system.subscription.waiting[0].total, 1e-6)
	at, _ := system.subscription.waiting[0].oldest()
	require.Less(t, at, 30, "they are the oldest, at the head of the queue")
}

func TestPoisonIsRetriedEachMinute(t *testing.T) {
	s := scenario()
	s.Seconds, s.Rate, s.Poison = 1200, func(second float64) float64 { return 100 * (1 - min(1, max(0, second-599))) }, 0.1
	system := New(s, 3)
	to(system, 600)
	stuck := system.subscription.poisoned
	require.InDelta(t, 6000, stuck, 300)
	failed := func() (sum float64) {
		for _, r := range system.set.replicas {
			sum += r.failed
		}
		return sum
	}
	before := failed()
	to(system, 660)
	require.InDelta(t, stuck, failed()-before, stuck/50)
	require.InDelta(t, stuck, system.subscription.poisoned, 0, "none of them succeeds")
}

func TestHeldMessagesAreBacklogOfEachReplica(t *testing.T) {
	s := scenario()
	s.Rate, s.Held = Constant(0), 500
	system := New(s, 3)
	to(system, 10)
	sample, err := system.TopicSample(0)
	require.NoError(t, err)
	require.Equal(t, int64(1500), sample.Partitions[0].Subscriptions[0].BacklogEntries)
	require.Equal(t, int64(1500), sample.Partitions[0].Subscriptions[0].UnackedMessages)
}

func TestMarkersNeverLeaveTheBacklog(t *testing.T) {
	s := scenario()
	s.Rate, s.Markers = Constant(0), 3
	system := New(s, 3)
	to(system, 100)
	_, delivered, entries, _ := counters(t, system)
	require.Equal(t, int64(3), entries)
	require.Zero(t, delivered)
}

func TestDownstreamLimitsAllReplicasTogether(t *testing.T) {
	s := scenario()
	s.Rate, s.Initial, s.Downstream = Constant(1000), 8, Constant(120)
	system := New(s, 3)
	run(system, still)
	require.InDelta(t, 120*600, system.score.Finished, 1)
	sample := system.InstancesSample()
	require.InDelta(t, measuredShare*600, sample.Instances[0].BusyTime.Seconds(), 30, "they wait inside their calls")
}

func TestAnAsynchronousFunctionReportsNothingBelowSaturation(t *testing.T) {
	s := scenario()
	s.Asynchronous = true
	system := New(s, 3)
	run(system, still)
	require.Less(t, system.InstancesSample().Instances[0].BusyTime.Seconds(), 0.02*600)
	s.Rate = Constant(1000)
	system = New(s, 3)
	run(system, still)
	require.InDelta(t, 0.9*600, system.InstancesSample().Instances[0].BusyTime.Seconds(), 10)
	require.Greater(t, system.InstancesSample().Instances[0].Received, system.InstancesSample().Instances[0].Processed+900)
}

func TestCountersStartAgainAtAReset(t *testing.T) {
	s := scenario()
	s.Resets = []int{300}
	system := New(s, 3)
	to(system, 299)
	before, given, _, _ := counters(t, system)
	require.InDelta(t, 30000, given, 1000)
	require.InDelta(t, 30000, before, 1000)
	to(system, 300)
	after, delivered, _, _ := counters(t, system)
	require.Zero(t, after)
	require.Less(t, delivered, int64(500))
}

func TestReplicasOfAFailoverSubscriptionHavePartitionsOfTheirOwn(t *testing.T) {
	s := scenario()
	s.Type, s.Partitions, s.Weights, s.Initial, s.Rate = backlog.Failover, 4, []float64{10, 1, 1, 1}, 8, Constant(130)
	system := New(s, 3)
	run(system, still)
	require.InDelta(t, 50*600, system.set.replicas[0].processed, 4000, "one has the busiest partition, and cannot do it")
	for _, r := range system.set.replicas[4:] {
		require.Zero(t, r.processed, "there are no more partitions")
	}
	require.InDelta(t, 50*600, system.subscription.waiting[0].total, 4000)
}

func TestTheSecondLoadOfAChainIsTheOutputOfTheFirst(t *testing.T) {
	first := New(scenario(), 3)
	sum := 0.0
	for _, finished := range first.Run(func(*System) int { return 1 }) { // 50 a second of 100
		sum += finished
	}
	require.InDelta(t, 50*600, sum, 4000)
	require.InDelta(t, first.Score().Finished, sum, 1e-6)
}

// Messages that arrived are processed or in a queue, in every scenario; and a load does not depend on the controller.
func TestMessagesAreConservedWhateverHappens(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 60 {
		s := scenario()
		s.Seconds, s.Rate = 400, Constant(300*random.Float64())
		s.Type = []backlog.SubscriptionType{backlog.Shared, backlog.KeyShared, backlog.Failover}[random.IntN(3)]
		s.Partitions, s.ReceiveQueue, s.Batch = 1+random.IntN(6), 1+random.Float64()*500, 1+random.Float64()*9
		s.Poison, s.Delayed, s.Delay = 0.01*random.Float64(), random.Float64(), time.Duration(random.IntN(200))*time.Second
		s.Crashing, s.RestartsOnScale, s.Min = 0.5*random.Float64(), random.IntN(2) == 0, random.IntN(2)
		s.Pending, s.Resets = Spans{{From: 100, To: 200}}, []int{150}
		if s.Type != backlog.Failover {
			s.More = []Curve{Constant(50)}
		}
		if s.Type == backlog.KeyShared {
			s.HotKey, s.Keys = Constant(0.3), float64(1+random.IntN(5000))
		}
		if random.IntN(2) == 0 {
			s.Failing = func(second float64) float64 { return []float64{0, 0.9, 0.2, 0}[int(second)/70%4] }
			s.CrashingStarts = Spans{{From: 50, To: 250}}
		}
		system, alone := New(s, 9), New(s, 9)
		run(system, func(int) (int, bool) { return s.Min + random.IntN(12), random.IntN(30) == 0 })
		run(alone, still)
		left := system.subscription.queued() + system.subscription.delayed.total
		require.InDelta(t, system.score.Messages, system.score.Finished+left, 1e-3, "%+v", s)
		require.InDelta(t, alone.score.Messages, system.score.Messages, 0)
		require.InDelta(t, alone.subscription.poisoned, system.subscription.poisoned, 0)
	}
}
