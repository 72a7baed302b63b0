// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "slices"

// entryCounters are the counters behind the mean batch, at the last full answer.
type entryCounters struct {
	published, entries int64
}

// topicCounters remember what the mean batch of a topic was learnt from. It is one for all partitions: a partition of its
// own would know its batches better where producers that batch differently write to different ones, and would need as
// many entries to learn as the whole topic does now, so that most would know none.
type topicCounters struct {
	entries map[int]entryCounters
	// batches are the last observations of the mean batch, oldest first; meanBatch is their median, 0 while unknown.
	batches   []float64
	meanBatch float64
}

const (
	// leastEntries make an observation of the mean batch: a handful says little.
	leastEntries = 10
	// keptBatches of 5 let the median ignore two observations that are off.
	keptBatches = 5
)

// learnMeanBatch updates the mean number of messages in an entry from a full answer: what was published between two
// full answers divided by the entries that were written for it. The first answer uses the counters since the topic was
// loaded. `avgMessagesPerEntry` is only the fallback: it was 2.4 times off on a real broker.
//
// Pulsar counts a message when it arrives and an entry when it is written, so a stall of the broker looks like one large
// batch (5.6 for a true 1, on a real broker): the median of the last few observations does not follow it.
func (c *topicCounters) learnMeanBatch(sample TopicSample) {
	messages, entries, now := c.writtenSince(sample)
	switch {
	case entries >= leastEntries || entries > 0 && len(c.batches) == 0:
		// The two counters are read one after the other; a mean below 1 is their race.
		c.observeBatch(max(1, float64(messages)/float64(entries)))
		c.entries = now
	case c.meanBatch == 0:
		c.meanBatch = reportedMeanBatch(sample)
	}
}

// writtenSince returns what was published and written since the last observation, and the counters to remember when it
// becomes one.
func (c *topicCounters) writtenSince(sample TopicSample) (messages, entries int64, now map[int]entryCounters) {
	now = make(map[int]entryCounters, len(sample.Partitions))
	for _, p := range sample.Partitions {
		if p.AddedEntries == nil {
			continue
		}
		counters := entryCounters{published: p.PublishedMessages, entries: *p.AddedEntries}
		now[p.Index] = counters
		before := c.entries[p.Index]
		if counters.entries < before.entries || counters.published < before.published {
			before = entryCounters{} // loaded again since: both restarted at 0
		}
		messages += counters.published - before.published
		entries += counters.entries - before.entries
	}
	return messages, entries, now
}

func (c *topicCounters) observeBatch(observed float64) {
	c.batches = append(c.batches, observed)
	if len(c.batches) > keptBatches {
		c.batches = c.batches[:copy(c.batches, c.batches[1:])]
	}
	sorted := slices.Clone(c.batches)
	slices.Sort(sorted)
	c.meanBatch = sorted[(len(sorted)-1)/2]
}

// reportedMeanBatch is what consumers report, weighted equally; 0 when none reports.
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
