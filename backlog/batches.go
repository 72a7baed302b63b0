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
	// one before, or than one message if it is the first.
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
	belongs := b.belongsToNewest(since, seen) || b.endsFirstStall(since)
	b.unconfirmed = false
	b.countedAt = sample.At
	if belongs {
		newest := len(b.last) - 1
		b.last[newest], b.counters = b.last[newest].plus(since), now
		return
	}
	if since.entries >= leastEntries || since.entries > 0 && len(b.last) == 0 {
		if before, newest, ok := b.split(since, seen); ok {
			b.observe(before)
			since = newest
		}
		b.observe(since)
		before := 1.0
		if len(b.last) > 1 {
			before = b.last[len(b.last)-2].mean()
		}
		b.unconfirmed = !b.steady() && b.newestMean() > before
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

// endsFirstStall reports whether the messages of these entries were counted in the first observation, before they were
// written: too few came with them. Transactions have as few, but not less than leastMean.
func (b *batches) endsFirstStall(since written) bool {
	return b.unconfirmed && len(b.last) == 1 && since.messages < since.entries &&
		(since.entries < leastMarked || since.mean() < leastMean)
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
		before := b.at(p.Index)
		if p.AddedEntries == nil {
			now = append(now, before)
			continue
		}
		counters := entryCounters{index: p.Index, published: p.PublishedMessages, entries: *p.AddedEntries}
		now = append(now, counters)
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
		return entryCounters{index: index}
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
		if i == newest && i > 0 && b.unconfirmed {
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

// batchesInterval bounds the age of the newest observation of batches while messages are published and no sign shows a
// change: one extra request in thirty at an interval of 10 s.
const batchesInterval = 5 * time.Minute

// Minimum changes that justify a request for another observation. Producers send a batch after a time (1 ms) or when it
// is full, so batches follow the rate. Each entry has about 60 bytes of overhead, which the messages of a batch share,
// and is compressed as a whole. Consumers report a rounded integer.
const (
	changedBatch    = 0.25
	changedRate     = 0.33
	changedBytes    = 0.15
	changedReported = 0.33
)

// signs are the signs of the batch size in any answer; each is 0 if the answer does not have it.
type signs struct {
	// published is the number of messages since the previous answer.
	published int64
	// rate is the rate of these messages per second.
	rate float64
	// bytes is the mean size of these messages.
	bytes float64
	// reported is the mean batch that consumers report.
	reported float64
}

// signs returns the signs of an answer that is newer than the last.
func (p *topicPartitions) signs(sample TopicSample) signs {
	s := signs{reported: reportedMeanBatch(sample)}
	if p.at.IsZero() || p.incomplete || sample.Incomplete != nil || len(sample.Partitions) != len(p.last) {
		return s
	}
	published, bytes := p.published(sample)
	if published <= 0 || bytes < 0 { // loaded again
		return s
	}
	s.published = published
	s.rate = float64(published) / sample.At.Sub(p.at).Seconds()
	s.bytes = float64(bytes) / float64(published)
	return s
}

// changed reports whether one of the signs differs from its earlier value.
func (s signs) changed(before signs) bool {
	return differ(s.rate, before.rate, changedRate) || differ(s.bytes, before.bytes, changedBytes) ||
		differ(s.reported, before.reported, changedReported)
}

// differ reports whether two known numbers differ by more than a share of the larger one.
func differ(a, b, share float64) bool {
	return a > 0 && b > 0 && max(a, b)-min(a, b) > share*max(a, b)
}

// wantsEntries reports whether to request entry counters in addition to the answer.
func (t *topicState) wantsEntries(sample TopicSample) bool {
	if sample.Incomplete != nil {
		return false
	}
	seen := t.partitions.signs(sample)
	hasBacklog, contradicted := false, false
	answer := byIndex(sample.Partitions)
	for name, state := range t.subscriptions {
		turnover := state.partitions.turnover(onPartitions(name, answer))
		hasBacklog = hasBacklog || turnover.entries > 0
		turnover.published = seen.published
		contradicted = contradicted || t.batches.contradicts(turnover)
	}
	t.batches.changed = contradicted || seen.changed(t.batches.signs)
	return t.batches.wantsCounters(sample, hasBacklog)
}

// contradicts reports whether the backlog in entries and the backlog in messages grew differently, by the newest mean:
// the batches being published have changed. A few entries are the counters' race.
func (b *batches) contradicts(since turnover) bool {
	if len(b.last) == 0 || since.published <= 0 || since.finished < 0 {
		return false
	}
	mean := b.newestMean()
	off := math.Abs(float64(since.grown)*mean - float64(since.published-since.finished))
	return off > changedBatch*float64(max(since.published, since.finished))+leastEntries*mean
}

// wantsCounters reports whether to request entry counters after an answer without them: rarely without a backlog; with
// a backlog until two observations agree, and again when there is a sign that they no longer do. Too few messages for
// an observation do not justify a request.
func (b *batches) wantsCounters(sample TopicSample, hasBacklog bool) bool {
	published := b.publishedSince(sample)
	inVain := b.requestedAt.After(b.countedAt)
	switch {
	case inVain && sample.At.Sub(b.requestedAt) < fullInterval:
		return false
	case len(b.last) == 0:
		return published > 0
	case b.unconfirmed && hasBacklog:
		return true // the next answer confirms the growth
	case published < leastEntries:
		return false
	case sample.At.Sub(b.countedAt) >= batchesInterval:
		return true
	case !hasBacklog:
		return false
	case !b.changed && float64(published) < leastEntries*b.newestMean():
		return sample.At.Sub(b.countedAt) >= fullInterval // too few entries, as far as is known
	default:
		return b.changed || !b.steady()
	}
}

// split separates what was written since the last answer from what was written before it, if there are signs of a
// change between the two: until then there was no sign, so the earlier mean applies. Otherwise batches of minutes and
// batches of seconds would share one mean, which would be wrong for both.
func (b *batches) split(since written, seen signs) (before, newest written, ok bool) {
	if !b.changed || len(b.last) == 0 || seen.published <= 0 {
		return before, newest, false
	}
	before.messages = since.messages - seen.published
	before.entries = int64(math.Round(float64(before.messages) / b.newestMean()))
	newest = written{messages: seen.published, entries: since.entries - before.entries}
	return before, newest, before.entries > 0 && newest.entries >= leastEntries &&
		float64(newest.entries)*leastMean <= float64(newest.messages)
}

// newestMean is the mean batch of the newest observation, which must exist.
func (b *batches) newestMean() float64 { return b.last[len(b.last)-1].mean() }

// steady reports whether the last two observations agree.
func (b *batches) steady() bool {
	n := len(b.last)
	return n > 1 && !differ(b.newestMean(), b.last[n-2].mean(), changedBatch)
}

func (b *batches) publishedSince(sample TopicSample) (messages int64) {
	for _, p := range sample.Partitions {
		before := b.at(p.Index).published
		if p.PublishedMessages < before {
			before = 0 // loaded again since
		}
		messages += p.PublishedMessages - before
	}
	return messages
}
