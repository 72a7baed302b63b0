// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// counted is a full answer about a topic with these counters.
func counted(published, entries int64) TopicSample {
	return TopicSample{
		At: midday(), Detail: Full,
		Partitions: []PartitionSample{{Index: NotPartitioned, PublishedMessages: published, AddedEntries: &entries}},
	}
}

func TestBatchesMeasureABacklogByItsLastEntries(t *testing.T) {
	type answer struct{ published, entries int64 }
	tests := map[string]struct {
		answers []answer
		backlog int64
		want    float64
	}{
		"entries of one size":                    {[]answer{{500, 10}}, 10, 500},
		"a backlog longer than all observations": {[]answer{{500, 10}}, 100, 5000},
		"single messages after batches of 50 and of 5": {[]answer{
			{1000, 20},
			{2000, 220},
			{3000, 1220},
			{3000, 1220},
		}, 1000, 1000},
		"batches of 50 on top of batches of 5":       {[]answer{{1000, 200}, {2000, 220}, {2000, 220}}, 220, 2000},
		"the newest part of an observation":          {[]answer{{1000, 200}, {2000, 220}, {2000, 220}}, 10, 500},
		"an older part":                              {[]answer{{1000, 200}, {2000, 220}, {2000, 220}}, 120, 1500},
		"a sudden growth needs a second observation": {[]answer{{1000, 1000}, {6000, 1100}}, 100, 100},
		"it is by the next answer": {
			[]answer{{1000, 1000}, {6000, 1100}, {6000, 1100}},
			100,
			5000,
		},
		"a stall of the broker counted messages before entries": {[]answer{
			{1000, 1000},
			{1560, 1100},
			{2000, 2000},
			{2000, 2000},
		}, 900, 900},
		"a stall of batches, with the backlog in its end": {[]answer{
			{50_000, 1000},
			{78_000, 1100},
			{100_000, 2000},
			{100_000, 2000},
		}, 500, 25_000},
		"a race of the two counters is no entry of half":   {[]answer{{95, 100}}, 100, 100},
		"transactions of one message":                      {[]answer{{6000, 12_000}}, 12_000, 6000},
		"transactions of three messages":                   {[]answer{{6000, 8000}}, 4000, 3000},
		"transactions after a few of them":                 {[]answer{{48, 97}, {300, 600}}, 600, 300},
		"an observation lacks messages of the one before":  {[]answer{{670, 600}, {4000, 4000}, {4000, 4000}}, 4000, 4000},
		"a race hides the last messages of an observation": {[]answer{{3468, 4000}, {4000, 4000}}, 4000, 4000},
		"a race hides a whole backlog":                     {[]answer{{670, 600}, {4000, 4000}, {4000, 4000}}, 3400, 3400},
		"a few transactions may be a race":                 {[]answer{{40, 80}}, 80, 80},
		"transactions after other messages": {[]answer{
			{1_000_000, 1_000_000},
			{1_006_000, 1_012_000},
		}, 12_000, 6000},
		"transactions and a few of the messages before": {[]answer{
			{1_000_000, 1_000_000},
			{1_006_000, 1_012_000},
		}, 13_000, 7000},
		"other messages after transactions": {[]answer{{6000, 12_000}, {12_000, 18_000}}, 6000, 6000},
		"markers that are not messages":     {[]answer{{10, 12_000}}, 12_000, 6000},
		"the end of a stall that began with the topic": {[]answer{
			{1500, 1000},
			{2000, 2000},
		}, 1000, 1000},
		"a topic that was loaded again":   {[]answer{{5000, 100}, {500, 10}, {500, 10}}, 110, 5500},
		"a handful of entries is ignored": {[]answer{{1000, 1000}, {1300, 1003}, {1300, 1003}}, 3, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b batches
			for _, a := range tt.answers {
				b.record(counted(a.published, a.entries), signs{})
			}
			require.InDelta(t, tt.want, float64(tt.backlog)*b.mean(tt.backlog), 1e-6*tt.want)
		})
	}
}

// A message counts on arrival and its entry once it is written, so messages in between make the newest batches look
// larger. The backlog may be read as larger by that share, and as smaller after the next observation.
func TestUnwrittenMessagesMakeABacklogLookLarger(t *testing.T) {
	var b batches
	b.record(counted(2000, 2000), signs{})
	b.record(counted(2206, 2200), signs{}) // 6 on their way, of 206
	b.since = 1000
	before := 3200 * b.mean(3200)
	require.Greater(t, before, 3230.0)
	require.InEpsilon(t, 3200, before, 0.02)

	b.record(counted(3200, 3200), signs{})
	b.since = 0
	require.InDelta(t, 3200, 3200*b.mean(3200), 0.1)
}

// An observation may have entries without their messages, if these were counted first. Where nothing is published
// afterwards, no later observation makes up for it.
func TestMessagesWithoutEntriesBelongToTheLastObservation(t *testing.T) {
	var b batches
	b.record(counted(173_400, 4000), signs{published: 173_400})
	b.record(counted(200_000, 4000), signs{published: 26_600})
	require.InDelta(t, 173_400, 4000*b.mean(4000), 0.1, "their entries may follow")
	b.record(counted(200_000, 4000), signs{})
	require.InDelta(t, 200_000, 4000*b.mean(4000), 0.1, "nothing was published since, and no entry has followed")

	b.record(counted(200_000, 4100), signs{})
	require.InDelta(t, 200_000, 4100*b.mean(4100), 0.1, "their entries follow late")

	var single batches
	single.record(counted(3468, 4000), signs{published: 3468})
	single.record(counted(4000, 4000), signs{published: 532})
	require.InDelta(t, 4000, 4000*single.mean(4000), 0.1, "the observation has more entries than messages")
}

func TestOlderBatchesArePeeked(t *testing.T) {
	var b batches
	reloaded := counted(0, 0)
	reloaded.PeekedEntries, reloaded.PeekedMessages = 5, 250
	b.record(reloaded, signs{})
	require.InDelta(t, 1000, 20*b.mean(20), 1e-9)
	b.record(counted(30, 30), signs{})
	require.InDelta(t, 1030, 50*b.mean(50), 1e-9, "later messages are newer")

	peekedAgain := counted(30, 30)
	peekedAgain.PeekedEntries, peekedAgain.PeekedMessages = 5, 5
	b.record(peekedAgain, signs{})
	require.InDelta(t, 1030, 50*b.mean(50), 1e-9, "once is enough")
}

// Pulsar may leave a partition out of one answer with entries.
func TestAPartitionWithoutEntriesKeepsItsCounters(t *testing.T) {
	var b batches
	both := func(first, second TopicSample) TopicSample {
		second.Partitions[0].Index = 0
		first.Partitions[0].Index = 1
		first.Partitions = append(first.Partitions, second.Partitions...)
		return first
	}
	b.record(both(counted(0, 0), counted(90e6, 90e6)), signs{})
	without := both(counted(500, 10), counted(90e6+500, 0))
	without.Partitions[1].AddedEntries = nil
	b.record(without, signs{})
	b.record(both(counted(500, 10), counted(90e6+1000, 90e6+20)), signs{})
	require.InDelta(t, 1500, 30*b.mean(30), 1e-9, "not all messages since it was loaded")
}

func TestBatchesFallBackToReportsOfConsumers(t *testing.T) {
	var b batches
	require.InDelta(t, 1, b.mean(10), 0)
	sample := counted(0, 0)
	sample.Partitions[0].Subscriptions = []SubscriptionSample{{Consumers: []ConsumerSample{
		{MeanBatch: 20},
		{MeanBatch: 40},
		{},
	}}}
	b.record(sample, signs{})
	b.recordReported(sample)
	require.InDelta(t, 30, b.mean(10), 0)
	b.record(counted(500, 100), signs{})
	require.InDelta(t, 5, b.mean(10), 0, "a measurement is better")
}

// The messages of the last entries, entry by entry, are compared with the sum of observations. They are equal if a
// backlog begins at an observation, and otherwise differ by at most the spread within that observation.
func TestBatchesAgreeWithEveryEntry(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		var b batches
		var sizes []int64
		var begins []int
		published := int64(0)
		size := 1 + random.Int64N(100)
		for range 1 + random.IntN(keptObservations) {
			if random.IntN(3) == 0 {
				size = 1 + random.Int64N(100)
			}
			begins = append(begins, len(sizes))
			for range leastEntries + random.IntN(200) {
				sizes = append(sizes, size)
				published += size
			}
			b.record(counted(published, int64(len(sizes))), signs{})
		}
		b.record(counted(published, int64(len(sizes))), signs{}) // nothing new: the observation counts
		for _, begin := range begins {
			truth := int64(0)
			for _, s := range sizes[begin:] {
				truth += s
			}
			entries := int64(len(sizes) - begin)
			merged := len(b.last) < len(begins) // two of them looked like a stall
			if !merged {
				require.InDelta(t, truth, float64(entries)*b.mean(entries), 1e-6*float64(truth), "seed %d, %d entries", seed,
					entries)
			}
		}
		whole := int64(len(sizes))
		require.InDelta(t, published, float64(whole)*b.mean(whole), 1e-6*float64(published),
			"seed %d: nothing is lost by merging", seed)
	}
}

func TestBatchesOfALongLifeKeepTheirSum(t *testing.T) {
	var b batches
	for i := range int64(1000) {
		b.record(counted((i+1)*100, (i+1)*20), signs{})
	}
	require.Len(t, b.last, keptObservations)
	require.InDelta(t, 5, b.mean(1_000_000), 1e-9)
}
