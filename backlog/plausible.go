// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"time"
)

// An answer that contradicts what is known about its topic is implausible. It counts once a second answer agrees, which
// is requested at once and in another form. A false alarm costs only this request, so the bounds are narrow.
const (
	// slack is a number of messages or entries that is ignored, since the counters of one answer are not read at the
	// same time.
	slack = 20
	// rateFactor is the factor to the recent rate: load steps below it are common, and larger ones change all replicas.
	rateFactor = 10
	// estimateFactor is the factor for estimates: the mean batch, and markers of transactions, which are entries without
	// messages. After an accepted change, changes up to this factor larger are accepted too.
	estimateFactor = 2
	// acceptedKept is the minimum time for which accepted changes count: longer than the usual time between bursts, jobs
	// and expiry. They are forgotten within twice that time.
	acceptedKept = 30 * time.Minute
)

// acceptedChanges is the range of recent accepted changes of a topic: changes within it need no second answer.
type acceptedChanges struct {
	// since is when recent began; earlier is the range before.
	since           time.Time
	recent, earlier extremes
}

// extremes of the accepted changes.
type extremes struct {
	// least and most messages per second that were published; unknown before the first pair of answers.
	least, most float64
	known       bool
	// unexplained has the maximum of each field.
	unexplained unexplained
}

// unexplained is the part of one subscription's counters that its other counters do not explain.
type unexplained struct {
	// grown is the growth of the backlog, in entries, that was not published: a cursor was reset.
	grown float64
	// fallen is the decrease of the backlog, in entries, that was not delivered: entries were skipped or have expired.
	fallen float64
	// redelivered is the number of delivered messages that were neither published nor in the backlog.
	redelivered float64
}

// change is the change of a topic from one answer to another.
type change struct {
	// answer has the partitions by position, and loaded those that were loaded again in between, unless it has shrunk.
	answer []*PartitionSample
	loaded []bool
	over   time.Duration
	// published is a lower bound of the published messages: since the partition was loaded, if it was loaded in between.
	published   float64
	unexplained unexplained
	// grown is the growth of the backlog in messages, for the subscription with the largest growth.
	grown float64
	// reloaded is true if a partition was loaded in between or is missing, so that more may have been published.
	reloaded bool
	// shrunk is true if there are other or fewer partitions.
	shrunk bool
	// contradiction is a change that a topic cannot have without being recreated or reloaded; empty for none.
	contradiction string
}

// seconds is the time that messages are counted over, at least latestSpan: a shorter time gives no rate.
func (c change) seconds() float64 { return max(latestSpan, c.over).Seconds() }

// CheckPlausible returns ErrImplausible with the reason if an answer, or the error of its fetch, needs a second answer.
// The backlog of an implausible answer may wake one replica meanwhile.
func (s *Feed) CheckPlausible(topic Topic, sample TopicSample, fetched error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil || fetched != nil {
		if errors.Is(fetched, ErrImplausible) {
			return fetched
		}
		return nil
	}
	implausible := state.checkPlausible(sample)
	if implausible != nil {
		answer := byIndex(sample.Partitions)
		for name, one := range state.subscriptions {
			one.unconfirmed = float64(backlogEntries(onPartitions(name, answer)))
		}
	}
	return implausible
}

// CheckSecond returns why the second answer about a topic is not accepted either; nil if it is. It is accepted if it
// contradicts nothing that is known, or if the first answer, which may be missing, agrees with it. Pulsar never removes
// a partition, so fewer partitions are accepted only after a ListInterval.
func (s *Feed) CheckSecond(topic Topic, first, second TopicSample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil {
		return nil
	}
	implausible := state.checkPlausible(second)
	agreed := implausible != nil && second.At.After(state.answeredAt) && len(first.Partitions) > 0 &&
		state.agree(first, second)
	if !agreed && !first.Detail.Has(Precise) { // two exact counts may agree
		state.exact.until = second.At.Add(fullInterval)
	}
	if !agreed {
		return implausible
	}
	if !state.changeTo(second).shrunk {
		return nil
	}
	if state.shrunkAt.IsZero() {
		state.shrunkAt = second.At
	}
	if second.At.Sub(state.shrunkAt) < ListInterval {
		return implausible
	}
	return nil
}

// checkPlausible returns why the answer needs a second one.
func (t *topicState) checkPlausible(sample TopicSample) error {
	c := t.changeTo(sample)
	if !t.answeredAt.IsZero() && !sample.At.After(t.answeredAt) {
		c.contradiction = fmt.Sprintf("it is of %s, and %s was answered before", sample.At.UTC().Format(time.RFC3339),
			t.answeredAt.UTC().Format(time.RFC3339))
	}
	if reason := t.accepted.outside(c); reason != "" {
		return Errorf(ErrImplausible, "%s: is there a proxy or a cache in between that alters answers?", reason)
	}
	return nil
}

// outside describes the part of a change that is outside the accepted range; empty for none.
func (a acceptedChanges) outside(c change) string {
	e, u := a.all(), c.unexplained
	least, most, tolerated := e.least*c.seconds(), e.most*c.seconds(), e.unexplained
	switch {
	case c.contradiction != "":
		return c.contradiction
	case e.known && c.published > slack+rateFactor*most:
		return fmt.Sprintf("msgInCounter grew by %.0f, and recently at most %.0f were published in that time",
			c.published, most)
	case e.known && least >= 1 && c.published < least/rateFactor && !c.reloaded:
		return fmt.Sprintf("msgInCounter grew by %.0f, and recently at least %.0f were published in that time",
			c.published, least)
	case u.grown > slack+estimateFactor*tolerated.grown:
		return fmt.Sprintf("msgBacklog grew by %.0f more than msgInCounter explains", u.grown)
	case u.fallen > slack+estimateFactor*tolerated.fallen:
		return fmt.Sprintf("msgBacklog fell by %.0f more than msgOutCounter explains", u.fallen)
	case u.redelivered > slack+estimateFactor*tolerated.redelivered:
		return fmt.Sprintf("msgOutCounter grew by %.0f more than msgInCounter and msgBacklog explain", u.redelivered)
	default:
		return ""
	}
}

// jumps reports whether far more was published than recently, and hardly any of it is in a backlog: then the earlier
// counters were different ones. The next answer also shows a load that the consumers keep up with, which needs no
// change before.
func (a acceptedChanges) jumps(c change) bool {
	e := a.all()
	return e.known && c.published > slack+rateFactor*e.most*c.seconds() && c.grown < c.published/rateFactor
}

// after is the range after an accepted change.
func (a acceptedChanges) after(c change, at time.Time) acceptedChanges {
	if c.over <= 0 {
		return a
	}
	if at.Sub(a.since) >= acceptedKept {
		a = acceptedChanges{since: at, earlier: a.recent}
	}
	rate := c.published / c.seconds()
	now := extremes{least: rate, most: rate, known: !c.reloaded, unexplained: c.unexplained}
	a.recent = a.recent.with(now)
	return a
}

// all is the whole range of the accepted changes.
func (a acceptedChanges) all() extremes { return a.earlier.with(a.recent) }

func (e extremes) with(other extremes) extremes {
	u := e.unexplained.larger(other.unexplained)
	switch {
	case !other.known:
		other = e
	case e.known:
		other.least, other.most = min(e.least, other.least), max(e.most, other.most)
	}
	other.unexplained = u
	return other
}

func (u unexplained) larger(other unexplained) unexplained {
	return unexplained{
		grown: max(u.grown, other.grown), fallen: max(u.fallen, other.fallen),
		redelivered: max(u.redelivered, other.redelivered),
	}
}

// agree reports whether the second answer follows from the first, as if nothing else were known.
func (t *topicState) agree(first, second TopicSample) bool {
	known := &topicState{batches: t.batches, subscriptions: make(map[string]*subscriptionState, len(t.subscriptions))}
	for name := range t.subscriptions {
		known.subscriptions[name] = &subscriptionState{}
	}
	first.Detail &^= Entries // observations of batches are the other one's
	known.record(first, 0)
	before, after := t.changeTo(first), known.changeTo(second)
	published := slack + before.published + rateFactor*t.accepted.all().most*after.seconds()
	explained := before.unexplained.plus(slack)
	same := !after.shrunk && len(after.answer) == len(known.partitions.indices)
	return same && after.contradiction == "" && after.published <= published &&
		after.unexplained.larger(explained) == explained
}

func (u unexplained) plus(more float64) unexplained {
	return unexplained{grown: u.grown + more, fallen: u.fallen + more, redelivered: u.redelivered + more}
}

// changeTo is the change from the last answer to a newer one; the first answer is no change.
func (t *topicState) changeTo(sample TopicSample) change {
	answer, lacks, between := t.partitions.place(sample)
	if lacks || between {
		c := change{answer: answer, shrunk: true, reloaded: true}
		if known := len(t.partitions.indices); lacks {
			c.contradiction = fmt.Sprintf("%d partitions where %d were known", len(answer), known)
		}
		return c
	}
	loaded, fell := t.reloaded(answer)
	c := change{answer: answer, loaded: loaded}
	if t.partitions.at.IsZero() || sample.Uncounted != nil { // without counters nothing explains a change
		return c
	}
	c.over, c.contradiction = sample.At.Sub(t.partitions.at), fell
	c.reloaded = fell != "" || t.partitions.incomplete || sample.Incomplete != nil
	pairs := t.partitions.pairs(sample.At, answer, loaded)
	for _, one := range pairs {
		c.published += float64(one.published)
	}
	for name, state := range t.subscriptions {
		if !sample.covers(name) {
			continue // tracked since
		}
		now := onPartitions(name, answer)
		if len(state.history.points) > 0 && c.contradiction == "" && sample.Incomplete == nil && isNowhere(now) {
			c.contradiction = fmt.Sprintf("subscription %s is gone", name)
		}
		u, grown := state.partitions.unexplained(now, pairs, &t.batches)
		c.unexplained, c.grown = c.unexplained.larger(u), max(c.grown, grown)
	}
	return c
}

// unexplained returns what the counters of the subscription do not explain, and the growth of its backlog in messages,
// on partitions that were not loaded again.
func (s *subscriptionPartitions) unexplained(answer []*SubscriptionSample, pairs []pair, b *batches) (
	u unexplained, messages float64,
) {
	var entered, delivered, grown, held float64
	var backlog int64
	for i, before := range s.last {
		now := answer[i]
		if now == nil || !before.present || pairs[i].kind != soundPair {
			continue
		}
		entered += float64(pairs[i].published)
		delivered += float64(now.DeliveredMessages - before.delivered)
		grown += float64(now.BacklogEntries - before.backlogEntries)
		held += float64(before.unacked)
		backlog += before.backlogEntries
	}
	mean := b.mean(backlog)
	return unexplained{
		grown:       max(0, grown-estimateFactor*entered),
		fallen:      max(0, entered/(estimateFactor*mean)-grown-delivered-held),
		redelivered: max(0, delivered-estimateFactor*(entered+mean*float64(backlog))),
	}, grown * mean
}
