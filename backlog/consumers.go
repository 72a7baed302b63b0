// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// consumers are the consumers of a subscription of one topic at the last full answer. Its slices and maps are
// immutable, so readings may share them.
type consumers struct {
	known bool
	// since is the first full answer with these consumers.
	since time.Time
	// ids and components are sorted and distinct.
	ids, components []string
	// holding are those of ids that hold unacknowledged messages.
	holding []string
	// namesakes is true if consumers cannot be told apart, since several on one partition have the same name.
	namesakes bool
	// most is the number on the partition with the most consumers if they are too many to distinguish; else 0.
	most int
	// connections are sorted and distinct. A replica that restarts has the same ID and another connection.
	connections []connection
	// started are the instances with a first consumer within StartedFor, by ID, such as t/n/name#3, with its time.
	started map[string]time.Time
	// unreadPartitions is the number of partitions with a backlog and no consumer, and unreadMessages their ready
	// messages.
	unreadPartitions int
	unreadMessages   float64
}

// StartedFor is how long a Reading shows that an instance connected.
const StartedFor = 10 * time.Minute

// connection identifies a consumer as the broker does. A seek or a broken network ends it: the consumer is back within
// a second under its name, and messages that it held are delivered again.
type connection struct {
	name  string
	since int64 // in Unix microseconds
}

func (c connection) compare(other connection) int {
	return cmp.Or(cmp.Compare(c.name, other.name), cmp.Compare(c.since, other.since))
}

// steady reports whether the same consumers were connected since then: a replica that restarted is another one.
func (c consumers) steady(since time.Time) bool {
	return c.known && c.most == 0 && !c.since.After(since)
}

// observe records the consumers of a full answer, and reports whether some left since the last one.
func (c *consumers) observe(at time.Time, answer []*SubscriptionSample, meanBatch float64) (left bool) {
	before := *c
	*c = consumers{known: true, since: before.since}
	var ids, holding, components []string
	var connections []connection
	started := map[string]time.Time{}
	for _, one := range answer {
		if one == nil {
			continue
		}
		if one.MoreConsumers > 0 {
			c.most = max(c.most, one.consumerCount())
		}
		if one.consumerCount() == 0 && one.BacklogEntries > 0 {
			c.unreadPartitions++
			c.unreadMessages += readyMessages(one.BacklogEntries, 0, meanBatch) // delays are unknown without a consumer
		}
		var namesakes bool
		ids, namesakes = appendIDs(ids, one.Consumers)
		c.namesakes = c.namesakes || namesakes
		for _, consumer := range one.Consumers {
			if consumer.UnackedMessages > 0 {
				holding = append(holding, consumer.ID)
			}
			if one.MoreConsumers == 0 { // else the list may have other consumers, although all stay
				connections = append(connections, connection{name: consumer.Name, since: consumer.ConnectedSince.UnixMicro()})
				addStarted(started, consumer, at)
			}
			if consumer.Component != "" {
				components = append(components, consumer.Component)
			}
		}
	}
	c.ids, c.components = distinct(ids, before.ids, cmp.Compare), distinct(components, before.components, cmp.Compare)
	c.holding = distinct(holding, before.holding, cmp.Compare)
	c.connections = distinct(connections, before.connections, connection.compare)
	if before.known { // else they may have reconnected
		c.started = before.startedUntil(at, started)
	}
	if before.known && slices.Equal(c.ids, before.ids) && slices.Equal(c.connections, before.connections) {
		return false
	}
	c.since = at
	return slices.ContainsFunc(before.connections, func(one connection) bool {
		_, stayed := slices.BinarySearchFunc(c.connections, one, connection.compare)
		return !stayed
	})
}

// addStarted adds the instance of a consumer that connected within StartedFor.
func addStarted(started map[string]time.Time, consumer ConsumerSample, at time.Time) {
	if consumer.ID != consumer.Name && at.Sub(consumer.ConnectedSince) <= StartedFor {
		keepFirst(started, consumer.ID, consumer.ConnectedSince)
	}
}

func keepFirst(started map[string]time.Time, id string, at time.Time) {
	if before, known := started[id]; !known || at.Before(before) {
		started[id] = at
	}
}

// startedUntil are the started instances after another full answer, in which some connected within StartedFor. A known
// instance that connects again has not started: its topic was unloaded, or its connection was lost.
func (c consumers) startedUntil(at time.Time, connected map[string]time.Time) map[string]time.Time {
	for _, id := range c.ids {
		delete(connected, id)
	}
	for id, since := range c.started {
		if at.Sub(since) <= StartedFor {
			connected[id] = since
		}
	}
	return connected
}

func (s *subscriptionState) forgetConsumers() {
	s.consumers = consumers{}
	for i := range s.partitions.last {
		s.partitions.last[i].consumers = -1
	}
}

// appendIDs adds the consumers of one partition. An instance counts once, however many consumers it opened. Plain
// consumers with the same name are one replica each: a Deployment gives all its pods the same name.
func appendIDs(ids []string, consumers []ConsumerSample) (all []string, namesakes bool) {
	nth := map[string]int{} // of plain consumers with a name
	for _, consumer := range consumers {
		id := consumer.ID
		if id == consumer.Name {
			nth[id]++
			if n := nth[id]; n > 1 {
				namesakes = true
				id += " " + strconv.Itoa(n)
			}
		}
		ids = append(ids, id)
	}
	return ids, namesakes
}

// plus is the union of the consumers of both topics; known only if both are known.
func (c consumers) plus(other consumers) consumers {
	return consumers{
		known: c.known && other.known,
		ids:   union(c.ids, other.ids), components: union(c.components, other.components), most: max(c.most, other.most),
		holding: union(c.holding, other.holding), namesakes: c.namesakes || other.namesakes,
		started:          firstStarts(c.started, other.started),
		unreadPartitions: c.unreadPartitions + other.unreadPartitions,
		unreadMessages:   c.unreadMessages + other.unreadMessages,
	}
}

// firstStarts merges the instances of two topics, each with its first consumer.
func firstStarts(a, b map[string]time.Time) map[string]time.Time {
	if len(b) == 0 {
		return a
	}
	both := maps.Clone(b)
	for id, at := range a {
		keepFirst(both, id, at)
	}
	return both
}

// count is the number of consumers. Each replica consumes all partitions and topics, so the number of one is the number
// of all.
func (c consumers) count() int { return max(len(c.ids), c.most) }

// countConsumers sets the consumers, those that hold messages, and the partitions without a consumer. While there is no
// consumer at all, no partition counts as unread.
func (r *Reading) countConsumers() {
	r.Components, r.Started = r.consumers.components, r.consumers.started
	r.Holding = Unknown(errNotToldApart)
	if r.consumers.known && r.consumers.most == 0 && !r.consumers.namesakes && r.Unacked.Known() {
		r.Holding = Known(float64(len(r.consumers.holding)))
	}
	switch {
	case !r.consumers.known:
		unknown := Unknown(ErrNotRequested)
		r.Consumers, r.UnreadPartitions, r.UnreadMessages = unknown, unknown, unknown
	case r.consumers.count() == 0:
		r.Consumers, r.UnreadPartitions, r.UnreadMessages = Known(0), Known(0), Known(0)
	default:
		r.Consumers = Known(float64(r.consumers.count()))
		r.UnreadPartitions = Known(float64(r.consumers.unreadPartitions))
		r.UnreadMessages = Known(r.consumers.unreadMessages)
	}
}

// redelivered are the messages that were delivered until the next answer and are neither held nor acknowledged: those
// of consumers that left. The backlog has entries, so with batches it is an estimate.
func (c partitionCounters) redelivered(now partitionCounters, published int64, meanBatch float64) float64 {
	delivered, grown := now.delivered-c.delivered, now.backlogEntries-c.backlogEntries
	acknowledged := max(0, float64(published)-meanBatch*float64(grown))
	returned, most := float64(delivered-(now.unacked-c.unacked))-acknowledged, c.unacked+delivered
	if grown > slack+estimateFactor*published { // a reset cursor, so what was acknowledged is unknown
		most = c.unacked
	}
	return min(max(0, returned), float64(most))
}

func heldBy(consumers []ConsumerSample) (messages int64) {
	for _, consumer := range consumers {
		messages += consumer.UnackedMessages
	}
	return messages
}

// distinct sorts the elements and removes duplicates; it returns the earlier slice if nothing changed.
func distinct[T comparable](all, before []T, compare func(T, T) int) []T {
	slices.SortFunc(all, compare)
	if all = slices.Compact(all); slices.Equal(all, before) {
		return before
	}
	return slices.Clip(all)
}

// union merges two sorted lists. It usually returns the first, since each replica consumes all topics.
func union(a, b []string) []string {
	missing := func(name string) bool {
		_, found := slices.BinarySearch(a, name)
		return !found
	}
	if !slices.ContainsFunc(b, missing) {
		return a
	}
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Clip(slices.Compact(both))
}
