// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"math"
	"time"
)

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

// turnover is the change of a backlog between two answers.
type turnover struct {
	// entries in the backlog now, and their growth.
	entries, grown int64
	// published and finished messages; negative if counters restarted.
	published, finished int64
}

// turnover returns the change since the last answer, except published messages.
func (s *subscriptionPartitions) turnover(answer []*SubscriptionSample) (since turnover) {
	for _, one := range answer {
		if one != nil {
			since.entries += one.BacklogEntries
			since.finished += one.DeliveredMessages - one.UnackedMessages
		}
	}
	since.grown = since.entries
	for _, before := range s.last {
		since.grown -= before.backlogEntries
		since.finished -= before.delivered - before.unacked
	}
	return since
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

// publishedSince is the number of messages published since the last observation.
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
