// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stream is a topic with one partition, producers of any batches, and its answers every ten seconds.
type stream struct {
	now                       time.Time
	published, entries, bytes int64
	// waiting has the size of each entry in the backlog, oldest first.
	waiting   []int64
	delivered int64
	consumers []ConsumerSample
}

const (
	streamInterval = 10 * time.Second
	payloadBytes   = 200
	entryBytes     = 60
)

// publish publishes entries of equal size.
func (s *stream) publish(entries, size int64) {
	for range entries {
		s.waiting = append(s.waiting, size)
	}
	s.entries += entries
	s.published += entries * size
	s.bytes += entries * (entryBytes + size*payloadBytes)
}

// finish removes the oldest entries.
func (s *stream) finish(entries int) {
	entries = min(entries, len(s.waiting))
	s.delivered += total(s.waiting[:entries])
	s.waiting = s.waiting[entries:]
}

func (s *stream) messages() int64 { return total(s.waiting) }

func (s *stream) answer(detail Detail) TopicSample {
	one := SubscriptionSample{
		Name: "s", Type: Shared, BacklogEntries: int64(len(s.waiting)),
		DeliveredMessages: s.delivered,
	}
	if detail.Has(Consumers) {
		one.Consumers = s.consumers
	}
	sample := TopicSample{At: s.now, Detail: detail &^ Entries, Partitions: []PartitionSample{{
		Index: NotPartitioned, PublishedMessages: s.published, PublishedBytes: s.bytes,
		Subscriptions: []SubscriptionSample{one},
	}}}
	if detail.Has(Entries) {
		sample = s.addEntries(sample)
	}
	return sample
}

func (s *stream) addEntries(sample TopicSample) TopicSample {
	entries := s.entries
	sample.Detail |= Entries
	sample.Partitions[0].AddedEntries = &entries
	return sample
}

// follower follows a stream as the Poller does, or requests entry counters with every answer.
type follower struct {
	t         *testing.T
	store     *Store
	always    bool
	requested []int // at which answers
	answer    int
}

func newFollower(t *testing.T, always bool) *follower {
	t.Helper()
	store, err := NewStore(10*time.Second, time.Minute, Bounds{})
	require.NoError(t, err)
	store.Track("me", NewSubscription(Cluster{}, "s", "orders"))
	return &follower{t: t, store: store, always: always}
}

// look is one fetch; it returns the known backlog in messages.
func (a *follower) look(s *stream) float64 {
	topic := Topic{Name: "persistent://public/default/orders"}
	detail := (*Feed)(a.store).NextRequest(topic, s.now).Detail
	if a.always {
		detail |= Full
	}
	sample := s.answer(detail)
	if !detail.Has(Entries) && (*Feed)(a.store).WantsEntries(topic, sample) {
		sample = s.addEntries(sample)
	}
	if sample.Detail.Has(Entries) {
		a.requested = append(a.requested, a.answer)
	}
	a.answer++
	a.store.Record(topic, sample)
	reading, err := a.store.Read(NewSubscription(Cluster{}, "s", "orders"), s.now)
	require.NoError(a.t, err)
	total, err := reading.Total.Value()
	require.NoError(a.t, err)
	return total
}

// TestAFirstCountAmidPublishingIsCorrected: Pulsar counts messages when they arrive, and entries when they are written.
func TestAFirstCountAmidPublishingIsCorrected(t *testing.T) {
	for name, test := range map[string]struct{ size, unwritten int64 }{
		"single messages":                       {1, 28},
		"single messages, most of them written": {1, 5},
		"batches":                               {10, 28},
		"batches, hardly any of them written":   {10, 48},
	} {
		t.Run(name, func(t *testing.T) {
			s, a := &stream{now: midday()}, newFollower(t, false)
			s.publish(49, test.size)
			s.entries -= test.unwritten
			a.look(s)
			s.now = s.now.Add(streamInterval)
			s.publish(1, test.size)
			s.entries += test.unwritten
			require.InDelta(t, 50*test.size, a.look(s), 1e-9)
			s.now = s.now.Add(streamInterval)
			s.finish(21)
			require.InDelta(t, 29*test.size, a.look(s), 1e-9, "the last of them")
		})
	}
}

func TestTransactionsAfterBatchesAreNoStall(t *testing.T) {
	var b batches
	b.record(counted(100_000, 10_000), signs{})
	b.record(counted(100_100, 10_200), signs{})
	require.InDelta(t, 100, 200*b.mean(200), 1e-9)
}

func TestEntryCountersAreRequestedWhenTheyMatter(t *testing.T) {
	busy := func(entries, size int64, finished int) func(*stream) {
		return func(s *stream) {
			s.publish(entries, size)
			s.finish(finished)
		}
	}
	times := func(n int, one func(*stream)) (all []func(*stream)) {
		for range n {
			all = append(all, one)
		}
		return all
	}
	then := func(before []func(*stream), after ...func(*stream)) []func(*stream) { return append(before, after...) }
	rest := func(*stream) {}
	tests := map[string]struct {
		turns []func(*stream)
		want  []int
	}{
		"first, to start counting":                   {times(40, rest), []int{0}},
		"again until two agree, and in five minutes": {times(62, busy(100, 20, 99)), []int{0, 1, 31, 61}},
		"after five minutes without a backlog":       {times(62, busy(100, 20, 100)), []int{0, 30, 60}},
		"a last time after publishing ends": {
			then(times(3, busy(100, 20, 0)), times(60, rest)...),
			[]int{0, 1, 31},
		},
		"at once when more is published, and until settled": {then(times(5, busy(100, 20, 99)),
			times(4, busy(200, 30, 199))...), []int{0, 1, 5, 6}},
		"at once when messages become larger": {then(times(5, busy(100, 20, 99)),
			times(4, busy(2000, 1, 99))...), []int{0, 1, 5, 6}},
		"at once when a backlog grows by too many entries": {
			then(times(5, busy(100, 4, 90)), times(4, busy(200, 2, 0))...),
			[]int{0, 1, 5, 6},
		},
		"once a minute with too few entries": {times(20, busy(1, 50, 0)), []int{0, 1, 7, 10, 16}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, a := &stream{now: midday()}, newFollower(t, false)
			for _, turn := range tt.turns {
				turn(s)
				a.look(s)
				s.now = s.now.Add(streamInterval)
			}
			require.Equal(t, tt.want, a.requested)
		})
	}
}

// A broker that refuses entry counters gets one request a minute, not one with every answer.
func TestRefusedEntryCountersAreRetriedOnceAMinute(t *testing.T) {
	s, a := &stream{now: midday()}, newFollower(t, false)
	topic := Topic{Name: "persistent://public/default/orders"}
	tried := 0
	for range 31 {
		s.publish(100, 20)
		sample := s.answer((*Feed)(a.store).NextRequest(topic, s.now).Detail &^ Entries)
		if (*Feed)(a.store).WantsEntries(topic, sample) {
			tried++
		}
		a.store.Record(topic, sample)
		s.now = s.now.Add(streamInterval)
	}
	require.Equal(t, 6, tried)
}

// Compared with a reference that requests them with every answer, backlogs of producers that change their batches every
// ten minutes are measured as well, with a quarter of the requests.
func TestRareEntryCountersMeasureABacklogAsWellAsFrequentOnes(t *testing.T) {
	requested, always := 0, 0
	var worse, looks float64
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, a, twin := &stream{now: midday()}, newFollower(t, false), newFollower(t, true)
		size, entries := 1+random.Int64N(100), 20+random.Int64N(500)
		for turn := range 180 {
			if random.IntN(60) == 0 { // another release of the producer, with the same load or another
				messages := size * entries
				size = 1 + random.Int64N(100)
				entries = max(1, messages/size)
				if random.IntN(2) == 0 {
					entries = 20 + random.Int64N(500)
				}
			}
			s.publish(entries+random.Int64N(1+entries/10), size)
			if turn%60 > 20 {
				s.finish(int(entries * 3 / 2))
			}
			got, best, truth := a.look(s), twin.look(s), float64(s.messages())
			if off := abs(got-truth) - abs(best-truth); off > changedBatch*max(truth, 1) {
				worse++
			}
			looks++
			s.now = s.now.Add(streamInterval)
		}
		requested += len(a.requested)
		always += len(twin.requested)
	}
	require.Less(t, worse, 0.005*looks)
	require.Less(t, requested, always/4)
}

func total(counts []int64) (sum int64) {
	for _, count := range counts {
		sum += count
	}
	return sum
}

func abs(x float64) float64 { return max(x, -x) }
