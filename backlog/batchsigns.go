// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"math"
	"time"
)

// batchesInterval bounds how old the newest observation of batches gets while messages are published and no sign shows
// a change: one request more in thirty at an interval of 10 s.
const batchesInterval = 5 * time.Minute

// How much has to change for another observation to be worth a request. Producers send a batch after a time (1 ms) or
// when it is full, so batches follow the rate; each entry has some 60 bytes of its own, which batches share, and is
// compressed whole; what consumers report is rounded to an integer.
const (
	changedBatch    = 0.25
	changedRate     = 0.33
	changedBytes    = 0.15
	changedReported = 0.33
)

// signs are what any answer says of how producers batch; each is 0 where it does not.
type signs struct {
	// published since the answer before, in messages.
	published int64
	// rate of that in messages per second.
	rate float64
	// bytes of a message among them.
	bytes float64
	// reported by consumers.
	reported float64
}

// signs of an answer that is newer than the last.
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

// changed says that one of the signs differs from what it was.
func (s signs) changed(before signs) bool {
	return differ(s.rate, before.rate, changedRate) || differ(s.bytes, before.bytes, changedBytes) ||
		differ(s.reported, before.reported, changedReported)
}

// differ says that the smaller of two known numbers is less than the larger one by more than a share of it.
func differ(a, b, share float64) bool {
	return a > 0 && b > 0 && max(a, b)-min(a, b) > share*max(a, b)
}

// wantsEntries says whether the answer is worth requesting entry counters too.
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

// turnover is what became of a backlog between two answers.
type turnover struct {
	// entries that wait now, and how many more than before.
	entries, grown int64
	// published and finished messages; below 0 where counters restarted.
	published, finished int64
}

// turnover since the last answer, but for what was published.
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

// contradicts says that a backlog in entries did not grow as one in messages did, by the newest mean: what is published
// now has other batches. A few entries are the counters' race.
func (b *batches) contradicts(since turnover) bool {
	if len(b.last) == 0 || since.published <= 0 || since.finished < 0 {
		return false
	}
	mean := b.newestMean()
	off := math.Abs(float64(since.grown)*mean - float64(since.published-since.finished))
	return off > changedBatch*float64(max(since.published, since.finished))+leastEntries*mean
}

// wantsCounters says whether to request entry counters after an answer without them: where there is no backlog, once in
// a while; where there is, until two observations agree, and again when there is a sign that they would no more. Too
// few messages for an observation are not worth it.
func (b *batches) wantsCounters(sample TopicSample, hasBacklog bool) bool {
	published := b.publishedSince(sample)
	inVain := b.requestedAt.After(b.countedAt)
	switch {
	case inVain && sample.At.Sub(b.requestedAt) < fullInterval:
		return false
	case len(b.last) == 0:
		return published > 0
	case b.unconfirmed && hasBacklog:
		return true // a growth that is believed by the next answer
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

// split separates what was written since the last answer from what was before it, when there are signs of a change
// between the two: until then there was none, so the mean so far holds. Without it, batches of minutes and those of
// seconds would make one mean, and a backlog of either would be measured by it.
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

// newestMean is the mean batch of the newest observation; there is one.
func (b *batches) newestMean() float64 { return b.last[len(b.last)-1].mean() }

// steady says that the last two observations agree.
func (b *batches) steady() bool {
	n := len(b.last)
	return n > 1 && !differ(b.newestMean(), b.last[n-2].mean(), changedBatch)
}

// publishedSince the last observation, in messages.
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
