// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "slices"

// crew is who consumed a subscription of one topic at the last full answer. Its slices are never written again, so
// readings may hold them.
type crew struct {
	known bool
	// ids, names and components are sorted, each once. A replica that restarts has its id again and another name.
	ids, names, components []string
	// unattended partitions have work and no consumer; with the messages that wait there.
	unattended         int
	unattendedMessages float64
}

// observe takes over the consumers of a full answer, and says whether some left since the last one.
func (c *crew) observe(answer []*SubscriptionSample, meanBatch float64) (left bool) {
	before := *c
	*c = crew{known: true}
	var ids, names, components []string
	for _, one := range answer {
		if one == nil {
			continue
		}
		if ready := readyMessages(one.BacklogEntries, one.DelayedMessages, meanBatch); ready > 0 && len(one.Consumers) == 0 {
			c.unattended++
			c.unattendedMessages += ready
		}
		for _, consumer := range one.Consumers {
			ids, names = append(ids, consumer.ID), append(names, consumer.Name)
			if consumer.Component != "" {
				components = append(components, consumer.Component)
			}
		}
	}
	c.ids, c.names, c.components = distinct(ids, before.ids), distinct(names, before.names), distinct(components, before.components)
	for _, name := range before.names {
		if _, stayed := slices.BinarySearch(c.names, name); !stayed {
			return true
		}
	}
	return false
}

// plus is the crew of both topics; known only when both are.
func (c crew) plus(other crew) crew {
	return crew{
		known: c.known && other.known,
		ids:   union(c.ids, other.ids), components: union(c.components, other.components),
		unattended:         c.unattended + other.unattended,
		unattendedMessages: c.unattendedMessages + other.unattendedMessages,
	}
}

// fromCrew fills in who consumes, and which partitions nobody does: none of them counts as unread while nobody consumes
// at all.
func (r *Reading) fromCrew() {
	r.Components = r.crew.components
	switch {
	case !r.crew.known:
		unknown := Unknown(ErrNotAsked)
		r.Consumers, r.UnreadPartitions, r.UnreadMessages = unknown, unknown, unknown
	case len(r.crew.ids) == 0:
		r.Consumers, r.UnreadPartitions, r.UnreadMessages = Known(0), Known(0), Known(0)
	default:
		r.Consumers = Known(float64(len(r.crew.ids)))
		r.UnreadPartitions = Known(float64(r.crew.unattended))
		r.UnreadMessages = Known(r.crew.unattendedMessages)
	}
}

// distinct sorts and keeps each once; it returns the slice from before when nothing changed.
func distinct(names, before []string) []string {
	slices.Sort(names)
	if names = slices.Compact(names); slices.Equal(names, before) {
		return before
	}
	return slices.Clip(names)
}

// union of two sorted lists: the first when it has all, which is the rule, for each replica consumes all topics.
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
