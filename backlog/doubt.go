// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"time"
)

// An answer that contradicts what is known of its topic is in doubt: it is believed once a second one agrees, which is
// requested at once and in another form. A false doubt costs that request alone, so the bounds are narrow.
const (
	// handful of messages or entries decide nothing, and the counters of one answer are not read at one time.
	handful = 20
	// farFrom the recent rate by this factor: a load step of less is common, and one of more moves all replicas there are.
	farFrom = 10
	// unsure is the factor for what is estimated: the mean batch, and markers of transactions, which are entries and no
	// messages. A change that was believed makes one of up to this factor as much believable too.
	unsure = 2
	// beliefKept is how long what was believed counts, at least: longer than bursts, jobs and expiry are usually apart.
	// It is forgotten within twice that.
	beliefKept = 30 * time.Minute
)

// belief is what answers about a topic said lately and were believed: more of the same needs no second look.
type belief struct {
	// since is when recent began; earlier is what was before that.
	since           time.Time
	recent, earlier extremes
}

// extremes of what was believed.
type extremes struct {
	// least and most messages per second that were published; unknown before the first pair of answers.
	least, most float64
	known       bool
	// unexplained is the most of each.
	unexplained unexplained
}

// unexplained is what the counters of one subscription do not explain in each other.
type unexplained struct {
	// grown entries of the backlog that were not published: a cursor was reset.
	grown float64
	// fallen entries of the backlog that were not delivered: they were skipped or have expired.
	fallen float64
	// redelivered messages were neither published nor in the backlog.
	redelivered float64
}

// change is what happened to a topic from one answer to another.
type change struct {
	// answer has the partitions by position, and loaded those that were loaded again in between, unless it has shrunk.
	answer []*PartitionSample
	loaded []bool
	over   time.Duration
	// published messages, at least; since the partition was loaded where that was in between.
	published   float64
	unexplained unexplained
	// grown messages of the backlog, of the subscription where that is most.
	grown float64
	// reloaded says that a partition was loaded in between or is missing, so that more may have been published.
	reloaded bool
	// shrunk says that there are other or fewer partitions.
	shrunk bool
	// contradiction is what does not happen to a topic that only goes on; empty for nothing.
	contradiction string
}

// seconds that messages are counted over: less than a latestSpan tells no rate.
func (c change) seconds() float64 { return max(latestSpan, c.over).Seconds() }

// Doubt says why an answer is not believed without a second one; nil when it is. What it says of the backlog may wake
// one replica meanwhile. An error of a fetch is in doubt when it is ErrImplausible.
func (f *Feed) Doubt(topic Topic, sample TopicSample, fetched error) error {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil || fetched != nil {
		if errors.Is(fetched, ErrImplausible) {
			return fetched
		}
		return nil
	}
	doubt := state.doubt(sample)
	if doubt != nil {
		answer := byIndex(sample.Partitions)
		for name, one := range state.subscriptions {
			one.doubted = float64(backlogEntries(onPartitions(name, answer)))
		}
	}
	return doubt
}

// Settle says why the second answer about a topic is not believed either; nil when it is. It is where it contradicts
// nothing that is known, and else where the first, of which there may be none, agrees with it. Pulsar never takes a
// partition away: that there are fewer is believed once it has been so for a ListInterval.
func (f *Feed) Settle(topic Topic, first, second TopicSample) error {
	s := f.store
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.topics[topic]
	if state == nil {
		return nil
	}
	doubt := state.doubt(second)
	if doubt == nil || !second.At.After(state.readAt) || len(first.Partitions) == 0 || !state.agree(first, second) {
		return doubt
	}
	if !state.changeTo(second).shrunk {
		return nil
	}
	if state.shrunkAt.IsZero() {
		state.shrunkAt = second.At
	}
	if second.At.Sub(state.shrunkAt) < ListInterval {
		return doubt
	}
	return nil
}

// doubt says what needs a second look.
func (t *topicState) doubt(sample TopicSample) error {
	c := t.changeTo(sample)
	if !t.readAt.IsZero() && !sample.At.After(t.readAt) {
		c.contradiction = fmt.Sprintf("it is of %s, and %s was answered before", sample.At.UTC().Format(time.RFC3339),
			t.readAt.UTC().Format(time.RFC3339))
	}
	if why := t.belief.doubt(c); why != "" {
		return Because(ErrImplausible, "%s: is there a proxy or a cache in between that alters answers?", why)
	}
	return nil
}

// doubt says what of a change is not believed at once; empty for nothing.
func (b belief) doubt(c change) string {
	e, u := b.believed(), c.unexplained
	least, most, tolerated := e.least*c.seconds(), e.most*c.seconds(), e.unexplained
	switch {
	case c.contradiction != "":
		return c.contradiction
	case e.known && c.published > handful+farFrom*most:
		return fmt.Sprintf("msgInCounter grew by %.0f, where %.0f at most were published in that time lately",
			c.published, most)
	case e.known && least > handful && c.published < least/farFrom && !c.reloaded:
		return fmt.Sprintf("msgInCounter grew by %.0f, where %.0f at least were published in that time lately",
			c.published, least)
	case u.grown > handful+unsure*tolerated.grown:
		return fmt.Sprintf("msgBacklog grew by %.0f more than msgInCounter explains", u.grown)
	case u.fallen > handful+unsure*tolerated.fallen:
		return fmt.Sprintf("msgBacklog fell by %.0f more than msgOutCounter explains", u.fallen)
	case u.redelivered > handful+unsure*tolerated.redelivered:
		return fmt.Sprintf("msgOutCounter grew by %.0f more than msgInCounter and msgBacklog explain", u.redelivered)
	default:
		return ""
	}
}

// leaps says that far more was published than lately, and hardly any of it is in a backlog: the counters were others
// before. A load that the consumers keep up with shows in the next answer as well, and needs nothing until then.
func (b belief) leaps(c change) bool {
	e := b.believed()
	return e.known && c.published > handful+farFrom*e.most*c.seconds() && c.grown < c.published/farFrom
}

// after is the belief after a change that was believed, at a time.
func (b belief) after(c change, at time.Time) belief {
	if c.over <= 0 {
		return b
	}
	if at.Sub(b.since) >= beliefKept {
		b = belief{since: at, earlier: b.recent}
	}
	rate := c.published / c.seconds()
	now := extremes{least: rate, most: rate, known: !c.reloaded, unexplained: c.unexplained}
	b.recent = b.recent.with(now)
	return b
}

// believed are the extremes of all that counts.
func (b belief) believed() extremes { return b.earlier.with(b.recent) }

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

// agree says that the second answer follows from the first as if that was all that is known.
func (t *topicState) agree(first, second TopicSample) bool {
	known := &topicState{batches: t.batches, subscriptions: make(map[string]*subscriptionState, len(t.subscriptions))}
	for name := range t.subscriptions {
		known.subscriptions[name] = &subscriptionState{}
	}
	first.Detail &^= Entries // observations of batches are the other one's
	known.record(first, 0)
	before, after := t.changeTo(first), known.changeTo(second)
	published := handful + before.published + farFrom*t.belief.believed().most*after.seconds()
	explained := before.unexplained.plus(handful)
	return after.contradiction == "" && after.published <= published && after.unexplained.larger(explained) == explained
}

func (u unexplained) plus(more float64) unexplained {
	return unexplained{grown: u.grown + more, fallen: u.fallen + more, redelivered: u.redelivered + more}
}

// changeTo is the change from the last answer to a newer one; the first one changes nothing.
func (t *topicState) changeTo(sample TopicSample) change {
	answer, same := t.partitions.place(sample)
	if !same {
		known := len(t.partitions.indices)
		return change{
			answer: answer, shrunk: true, contradiction: fmt.Sprintf("%d partitions where %d were known", len(answer), known),
		}
	}
	loaded, fell := t.reloaded(answer)
	c := change{answer: answer, loaded: loaded}
	if t.partitions.at.IsZero() {
		return c
	}
	c.over, c.contradiction = sample.At.Sub(t.partitions.at), fell
	c.reloaded = fell != "" || t.partitions.incomplete || sample.Incomplete != nil
	published := t.partitions.publishedOn(answer, loaded)
	for _, messages := range published {
		c.published += messages
	}
	for name, state := range t.subscriptions {
		if !sample.covers(name) {
			continue // tracked since
		}
		now := onPartitions(name, answer)
		if len(state.history.points) > 0 && c.contradiction == "" && sample.Incomplete == nil && isNowhere(now) {
			c.contradiction = fmt.Sprintf("subscription %s is gone", name)
		}
		u, grown := state.partitions.unexplained(now, loaded, published, &t.batches)
		c.unexplained, c.grown = c.unexplained.larger(u), max(c.grown, grown)
	}
	return c
}

// publishedOn is what was published on each partition since the last answer that had it, at least.
func (p *topicPartitions) publishedOn(answer []*PartitionSample, loaded []bool) []float64 {
	published := make([]float64, len(answer))
	for i, partition := range answer {
		switch {
		case partition == nil, i >= len(p.last) && (loaded[i] || p.incomplete): // unknown
		case i < len(p.last) && !loaded[i]:
			published[i] = float64(partition.PublishedMessages - p.last[i].messages)
		default:
			published[i] = float64(partition.PublishedMessages)
		}
	}
	return published
}

// unexplained is what the answer about the subscription does not explain in itself, and how many messages its backlog
// grew by, on partitions that were not loaded again; published are the messages on each since the last answer.
func (s *subscriptionPartitions) unexplained(answer []*SubscriptionSample, loaded []bool, published []float64,
	b *batches,
) (u unexplained, messages float64) {
	var entered, delivered, grown, held float64
	var backlog int64
	for i, before := range s.last {
		now := answer[i]
		if now == nil || !before.present || loaded[i] {
			continue
		}
		entered += published[i]
		delivered += float64(now.DeliveredMessages - before.delivered)
		grown += float64(now.BacklogEntries - before.backlogEntries)
		held += float64(before.unacked)
		backlog += before.backlogEntries
	}
	mean := b.mean(backlog)
	return unexplained{
		grown:       max(0, grown-unsure*entered),
		fallen:      max(0, entered/(unsure*mean)-grown-delivered-held),
		redelivered: max(0, delivered-unsure*(entered+mean*float64(backlog))),
	}, grown * mean
}
