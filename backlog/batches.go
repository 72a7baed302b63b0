// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// entryCounters are Pulsar's counters of one partition at an observation.
type entryCounters struct {
	index              int
	published, entries int64
}

// written is what was written to a topic between two observations.
type written struct{ entries, messages int64 }

func (w written) mean() float64 { return float64(w.messages) / float64(w.entries) }

func (w written) plus(other written) written {
	return written{entries: w.entries + other.entries, messages: w.messages + other.messages}
}

// batches estimates the messages per entry of a topic. A backlog consists of the last entries, so a backlog of N
// entries is measured by the last N entries, however batches were sized before: after 200 entries of 5 messages and 20
// of 50, the backlog is 2,000 messages, which no single mean shows.
//
// One estimate covers all partitions. An estimate for each partition would be better where producers with different
// batches write to different partitions, but each would need as many entries to learn as the whole topic does now, so
// most partitions would have none.
type batches struct {
	counters []entryCounters // by index
	// last are the latest observations, oldest first, and older is the sum of all before them.
	last  []written
	older written
	// unconfirmed is true if the newest observation comes from the last answer with entries and is much larger than the
	// one before.
	unconfirmed bool
	// reported is the mean batch that consumers reported before the first observation; 0 for none.
	reported float64
	// since is the number of messages published since the newest observation. They are assumed to be in batches of the
	// same size.
	since int64
	// changed is true if the last answer had signs of other batches than those of the newest observation.
	changed bool
	// signs are of the answer that came with the newest observation.
	signs signs
	// requestedAt is when entry counters were last requested, and countedAt when they last came.
	requestedAt, countedAt time.Time
}

const (
	// leastEntries is the minimum of an observation: a handful of entries is not enough.
	leastEntries = 10
	// keptObservations covers minutes of backlog; at 16 bytes each they are 256 bytes a topic.
	keptObservations = 16
	// stallTolerance is the allowed difference between the messages that a stall moved forward and those that are missing
	// after it.
	stallTolerance = 0.5
	// leastMarked entries show that some are not messages: a transaction ends with a marker, which is an entry. Counters
	// are read one after the other, so slightly less than one message per entry is a race between them.
	leastMarked = 100
	mostMarked  = 0.9
	// leastMean is the mean of transactions of one message.
	leastMean = 0.5
)

// record adds an answer with entry counters: the messages published since the last observation, and the entries written
// for them. The first observation uses the counters since the topic was loaded.
func (b *batches) record(sample TopicSample, seen signs) {
	if sample.PeekedEntries > 0 && len(b.last) == 0 {
		b.observe(written{entries: sample.PeekedEntries, messages: sample.PeekedMessages}) // older than the counted messages
	}
	since, now := b.writtenSince(sample)
	b.unconfirmed = false
	b.countedAt = sample.At
	if b.belongsToNewest(since, seen) {
		newest := len(b.last) - 1
		b.last[newest], b.counters = b.last[newest].plus(since), now
	}
	if since.entries >= leastEntries || since.entries > 0 && len(b.last) == 0 {
		if before, newest, ok := b.split(since, seen); ok {
			b.observe(before)
			since = newest
		}
		b.observe(since)
		b.unconfirmed = !b.steady() && len(b.last) > 1 && b.newestMean() > b.last[len(b.last)-2].mean()
		b.counters, b.signs = now, seen
	}
}

// belongsToNewest reports whether the entries of these messages were counted in the newest observation, a moment after
// its messages: it lacks as many, or nothing was published since the last answer and no entry has followed.
func (b *batches) belongsToNewest(since written, seen signs) bool {
	if since.entries > 0 || since.messages <= 0 || len(b.last) == 0 {
		return false
	}
	newest := b.last[len(b.last)-1]
	return seen.published == 0 || since.messages <= newest.entries-newest.messages
}

// recordReported records the mean batch that consumers report, until there is an observation. `avgMessagesPerEntry` is
// only a fallback: it was off by a factor of 2.4 on a real broker.
func (b *batches) recordReported(sample TopicSample) {
	if len(b.last) == 0 {
		b.reported = reportedMeanBatch(sample)
	}
}

// writtenSince returns what was written since the last observation, and the counters to keep if it becomes one.
func (b *batches) writtenSince(sample TopicSample) (since written, now []entryCounters) {
	now = make([]entryCounters, 0, len(sample.Partitions))
	for _, p := range sample.Partitions {
		if p.AddedEntries == nil {
			continue
		}
		counters := entryCounters{index: p.Index, published: p.PublishedMessages, entries: *p.AddedEntries}
		now = append(now, counters)
		before := b.at(p.Index)
		if counters.entries < before.entries || counters.published < before.published {
			before = entryCounters{} // loaded again since: both restarted at 0
		}
		since.messages += counters.published - before.published
		since.entries += counters.entries - before.entries
	}
	slices.SortFunc(now, func(a, c entryCounters) int { return cmp.Compare(a.index, c.index) })
	return since, now
}

// at returns the counters of a partition at the last observation; 0 if it had no such partition.
func (b *batches) at(index int) entryCounters {
	i, found := slices.BinarySearchFunc(b.counters, index,
		func(c entryCounters, index int) int { return cmp.Compare(c.index, index) })
	if !found {
		return entryCounters{}
	}
	return b.counters[i]
}

// observe appends an observation. Pulsar counts a message when it arrives and an entry when it is written, so a stall
// of the broker looks like one large batch (5.6 for a real 1, on a real broker) followed by smaller ones with as many
// messages less. The two are merged into one observation.
func (b *batches) observe(newest written) {
	if n := len(b.last); n >= 2 && stalled(b.last[n-2], b.last[n-1], newest) {
		b.last[n-1] = b.last[n-1].plus(newest)
		return
	}
	b.last = append(b.last, newest)
	if len(b.last) > keptObservations {
		b.older = b.older.plus(b.last[0])
		b.last = b.last[:copy(b.last, b.last[1:])]
	}
}

// stalled reports whether the middle observation has as many surplus messages, by the mean of the one before, as the
// one after it lacks.
func stalled(before, middle, after written) bool {
	excess := (middle.mean() - before.mean()) * float64(middle.entries)
	lack := (before.mean() - after.mean()) * float64(after.entries)
	return excess > 0 && lack > 0 && math.Abs(excess-lack) <= stallTolerance*max(excess, lack)
}

// mean is the mean number of messages in each of the last entries; below 1 for transactions. Observations are used
// unchanged: messages that the race of the counters adds to one are missing in another.
func (b *batches) mean(entries int64) float64 {
	if len(b.last) == 0 {
		return max(1, b.reported)
	}
	newest := len(b.last) - 1
	left, messages := max(1, entries), 0.0
	oldest, used := len(b.last), written{}
	for ; oldest > 0 && left > 0; oldest-- {
		i := oldest - 1
		used = used.plus(b.last[i])
		there, one := b.last[i].entries, b.last[i].mean()
		if i == newest && b.unconfirmed {
			// A sudden growth may be an ongoing stall, until the next answer shows otherwise.
			one = min(one, max(1, b.last[newest-1].mean()))
		}
		if i == newest {
			there += int64(float64(b.since) / max(leastMean, one))
		}
		taken := min(left, there)
		messages += float64(taken) * one
		left -= taken
	}
	if left > 0 {
		before := b.older
		if before.entries == 0 {
			before = b.last[0]
		}
		used = used.plus(b.older)
		messages += float64(left) * before.mean()
	}
	mean := messages / float64(max(1, entries))
	if used.entries < leastMarked || mean > mostMarked || b.followsStall(oldest, used) {
		return max(1, mean)
	}
	return max(leastMean, mean)
}

// followsStall reports whether the messages written since an observation are as many too few as that observation has
// too many.
func (b *batches) followsStall(since int, after written) bool {
	return since > 0 && stalled(written{entries: 1, messages: 1}, b.last[since-1], after)
}

// reportedMeanBatch is the mean of what consumers report, weighted equally; 0 if none reports.
func reportedMeanBatch(sample TopicSample) float64 {
	var sum, count int64
	for _, p := range sample.Partitions {
		for _, s := range p.Subscriptions {
			for _, consumer := range s.Consumers {
				if consumer.MeanBatch > 0 {
					sum += consumer.MeanBatch
					count++
				}
			}
		}
	}
	if count == 0 {
		return 0
	}
	return float64(sum) / float64(count)
}
