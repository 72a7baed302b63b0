// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Read returns the reading of the subscription over its topics, with its Coverage: if a topic or partition is unknown,
// the sums are lower bounds. It fails with the reason if nothing is known, and with ErrNoData until the first answers.
//
// Topics that a pattern matches do not count while they lack the subscription, since a client finds them up to a minute
// late, and while Pulsar reports that they do not exist, since they were deleted after the last listing. A new one with
// messages is missing while there are no consumers, since Pulsar keeps no messages without a subscription. The reading
// fails only if no topic counts. Topics that are not persistent have no backlog, and do not count beside others.
func (s *Store) Read(subscription Subscription, now time.Time) (Reading, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var sum Reading
	some := false
	inputs, err := s.inputs(subscription, now, func(one input) {
		reading := one.topic.read(one.state, now)
		if some {
			reading = sum.plus(reading)
		}
		sum, some = reading, true
	})
	if err != nil {
		return Reading{}, err
	}
	sum.countConsumers()
	sum.Coverage = inputs.coverage
	if err := inputs.coverage.Err(); err != nil {
		sum = sum.lowerBounds(err)
	}
	if sum.Window == 0 { // one answer about each: nothing was counted before it
		sum = sum.withoutRates()
	}
	sum.Instances = s.readInstances(subscription.Workload, sum.Consumers, now)
	return sum, nil
}

// yieldAfter is how many topics and partitions are read at once: a millisecond or two, and writers wait for them.
const yieldAfter = 400

// yield lets writers in between the topics of a large subscription. mu is held for reading.
func (i *inputs) yield(mu *sync.RWMutex) {
	if i.work++; i.work < yieldAfter {
		return
	}
	i.work = 0
	mu.RUnlock()
	mu.RLock()
}

// inputs are the topics that count for a reading.
type inputs struct {
	// take gets each input while the lock is held that found it, and known is their number.
	take     func(input)
	known    int
	work     int // topics and partitions since the last yield
	coverage Coverage
	// lacking is the error of the first topic that matches and lacks the subscription; gone topics no longer exist.
	lacking error
	gone    int
	// lost is the topic with messages that lacks the subscription since the latest time, lostAt.
	lost   MissingInput
	lostAt time.Time
	// consumed is true if some topic may have consumers; otherwise none has any since leftAt.
	consumed bool
	leftAt   time.Time
	// first is the first reason why a topic is missing, and firstAnswers the number of topics without their first answer.
	first        error
	firstAnswers int
}

// input is a topic that has an answer and the subscription.
type input struct {
	name  string
	topic *topicState
	state *subscriptionState
}

// add adds an input, or the reason why it is missing.
func (i *inputs) add(name string, one input, err error) {
	if err == nil {
		i.work += len(one.topic.partitions.indices)
		c := one.state.consumers
		i.consumed = i.consumed || !c.known || c.count() > 0
		if c.since.After(i.leftAt) {
			i.leftAt = c.since
		}
	}
	switch {
	case err != nil:
		i.miss(name, err)
	case one.topic.incomplete != nil:
		i.known++
		i.take(one)
		i.coverage.miss(name, one.topic.incomplete)
	default:
		i.known++
		i.take(one)
		i.coverage.Topics++
		i.coverage.Known++
	}
}

func (i *inputs) miss(name string, err error) {
	i.coverage.miss(name, err)
	if i.first == nil {
		i.first = err
	}
	if isFirstAnswer(err) {
		i.firstAnswers++
	}
}

// foundWithin is when a topic has the subscription, if consumers with its pattern were there: their client looks for
// topics once a minute. It may take as long to see that they left.
const foundWithin = time.Minute + fullInterval

// lack records that a topic that a pattern matches lacks the subscription.
func (i *inputs) lack(name string, topic *topicState, subscription string, err error) {
	i.lacking = cmp.Or(i.lacking, err)
	since := topic.subscriptions[subscription].missingSince
	if topic.partitions.hasMessages() && since.After(i.lostAt) {
		i.lost, i.lostAt = MissingInput{name, err}, since
	}
}

// missLost adds the topic with messages that are lost until a replica creates the subscription. A topic that consumers
// left without one is not theirs: to start a replica for it would be in vain.
func (i *inputs) missLost() {
	if i.known > 0 && !i.consumed && i.lostAt.Add(foundWithin).After(i.leftAt) {
		i.miss(i.lost.Name, i.lost.Reason)
	}
}

// inputs passes the topics that count to take, at least one, or returns why the subscription is unknown. mu is held for
// reading.
func (s *tracked) inputs(subscription Subscription, now time.Time, take func(input)) (inputs, error) {
	found, err := s.findInputs(subscription, now, take)
	if errors.Is(err, ErrNotTracked) {
		return inputs{}, cmp.Or(refusal(s.owners, subscription), err)
	}
	return found, err
}

// refusal is why no owner may track the subscription; nil if none was refused. It is the same each time.
func refusal(owners map[string]*interest, subscription Subscription) (reason error) {
	first := ""
	for owner, one := range owners {
		subscription.Pace = one.subscription.Pace // at whatever pace
		if one.refused != nil && (first == "" || owner < first) && one.subscription.Equal(subscription) {
			first, reason = owner, one.refused
		}
	}
	return reason
}

func (s *tracked) findInputs(subscription Subscription, now time.Time, take func(input)) (inputs, error) {
	if len(subscription.Topics)+len(subscription.Patterns) == 0 {
		return inputs{}, fmt.Errorf("%w: subscription %s has no topics", ErrNotTracked, subscription.Name)
	}
	found := inputs{take: take}
	leaveOut := len(subscription.Patterns) > 0 || len(subscription.NonPersistent()) < len(subscription.Topics)
	for _, name := range subscription.Topics {
		found.yield(&s.mu)
		if leaveOut && isNonPersistent(name) {
			continue
		}
		one, err := s.input(Topic{Cluster: subscription.Cluster, Name: name}, subscription.Name, now)
		if errors.Is(err, ErrNotTracked) || isFirstAnswer(err) {
			return inputs{}, err // its topics have just changed, or a leader has just started
		}
		found.add(name, one, err)
	}
	if err := s.addMatched(&found, subscription, now); err != nil {
		return inputs{}, err
	}
	switch {
	case found.firstAnswers > 0 && found.firstAnswers >= found.known:
		return inputs{}, found.coverage.Missing[len(found.coverage.Missing)-1].Reason
	case found.known == 0 && found.first != nil:
		return inputs{}, found.first
	case found.known == 0:
		return inputs{}, found.unknown(subscription)
	}
	return found, nil
}

// addMatched adds the topics that the patterns match. mu is held.
func (s *tracked) addMatched(found *inputs, subscription Subscription, now time.Time) error {
	if len(subscription.Patterns) == 0 {
		return nil
	}
	matched, unknown := s.matched(subscription, now)
	for _, one := range unknown {
		if one.isRecent() {
			return one.Reason
		}
		found.miss(one.Name, one.Reason)
	}
	for _, name := range matched {
		found.yield(&s.mu)
		topic := Topic{Cluster: subscription.Cluster, Name: name}
		one, err := s.input(topic, subscription.Name, now)
		switch {
		case errors.Is(err, ErrSubscriptionNotFound):
			found.lack(name, s.topics[topic], subscription.Name, err)
		case errors.Is(err, ErrNotTracked): // since a yield: a listing lacks it, or its tracking ended
			_, unknown := s.matched(subscription, now)
			if i := slices.IndexFunc(unknown, MissingInput.isRecent); i >= 0 {
				return unknown[i].Reason
			}
			found.gone++
		case errors.Is(err, ErrTopicNotFound):
			found.gone++
		default:
			found.add(name, one, err)
		}
	}
	found.missLost()
	return nil
}

// isRecent reports whether what is tracked has just changed, or a leader has just started.
func (m MissingInput) isRecent() bool {
	return errors.Is(m.Reason, ErrNotTracked) || isFirstAnswer(m.Reason)
}

// unknown returns why no topic of a subscription with patterns counts.
func (i *inputs) unknown(subscription Subscription) error {
	patterns := strings.Join(subscription.Patterns, ", ")
	switch {
	case i.lacking != nil:
		return fmt.Errorf("%w; no topic that matches %s has it", i.lacking, patterns)
	case i.gone > 0:
		return fmt.Errorf("%w: the topics that matched %s are gone", ErrTopicNotFound, patterns)
	default:
		return fmt.Errorf("%w: no topic of the namespace matches %s; create one or correct the pattern", ErrTopicNotFound,
			patterns)
	}
}

// matched returns the topics that the patterns match and that are not named, without duplicates, and the patterns
// without a listing. If the latest listing failed, the topics of the last one still count. mu is held.
func (s *tracked) matched(subscription Subscription, now time.Time) (names []string, unknown []MissingInput) {
	for _, text := range subscription.Patterns {
		state, err := s.readPattern(Topic{Cluster: subscription.Cluster, Name: text}, subscription, now)
		if err != nil {
			unknown = append(unknown, MissingInput{text, err})
		}
		if state != nil {
			names = append(names, state.matched...)
		}
	}
	if len(subscription.Patterns) > 1 { // patterns may overlap
		slices.Sort(names)
		names = slices.Compact(names)
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, named := slices.BinarySearch(subscription.Topics, name)
		return named
	}), unknown
}

// readPattern returns the matches of a pattern, or why they are unknown. mu is held.
func (s *tracked) readPattern(key Topic, subscription Subscription, now time.Time) (*patternState, error) {
	state := s.patterns[key]
	if state == nil {
		return nil, fmt.Errorf("%w: %s", ErrNotTracked, key.Name)
	}
	if !state.follows(subscription.Name) {
		return nil, fmt.Errorf("%w: subscription %s on %s", ErrNotTracked, subscription.Name, key.Name)
	}
	return state, s.namespaces[NamespaceOf(key.Cluster, key.Name)].check(state, s.staleAfter, now)
}

// input returns a topic for a reading, or why its part of the subscription is unknown. mu is held.
func (s *tracked) input(key Topic, subscription string, now time.Time) (input, error) {
	topic := s.topics[key]
	if topic == nil {
		return input{}, fmt.Errorf("%w: %s", ErrNotTracked, key.Name)
	}
	state := topic.subscriptions[subscription]
	switch {
	case state == nil:
		return input{}, fmt.Errorf("%w: subscription %s on %s", ErrNotTracked, subscription, key.Name)
	case topic.failure != nil && Authoritative(topic.failure):
		return input{}, topic.failure
	case topic.answeredAt.IsZero() && topic.failure != nil:
		return input{}, topic.failure
	case !topic.answeredAt.IsZero() && now.Sub(topic.answeredAt) > s.staleAfter:
		return input{}, staleError(topic.answeredAt, topic.failure)
	case state.missing:
		return input{}, topic.lacks(key.Name, subscription)
	case len(state.history.points) == 0 && cmp.Or(topic.failure, topic.incomplete) != nil:
		return input{}, cmp.Or(topic.failure, topic.incomplete)
	case len(state.history.points) > 0 && now.Sub(state.history.last().at) > s.staleAfter:
		return input{}, staleError(state.history.last().at, topic.incomplete) // on partitions that are missing
	case len(state.history.points) == 0:
		return input{}, fmt.Errorf("%w: first answer about %s is under way", ErrNoData, key.Name)
	}
	return input{name: key.Name, topic: topic, state: state}, nil
}

// staleError names a time, not an age: conditions have this text, which must not change every second.
func staleError(since time.Time, failure error) error {
	at := since.UTC().Format(time.RFC3339)
	if failure == nil {
		return fmt.Errorf("%w: no answer since %s", ErrStale, at)
	}
	return fmt.Errorf("%w: no good answer since %s: %w", ErrStale, at, failure)
}

// MostOthers is the maximum number of names in OtherSubscriptions, and in an error. Names are cut to MostQuoted bytes.
const MostOthers = 5

// OtherSubscriptions exist on a topic and were not requested: a missing one may have a wrong name.
type OtherSubscriptions struct {
	Names []string
	// More is the number of those without a name here.
	More int
}

// lacks is the error of a topic without the subscription, which names those that exist. Conditions have this text, so
// the order is always the same.
func (t *topicState) lacks(topic, subscription string) error {
	names := slices.Clone(t.others.Names)
	for name, state := range t.subscriptions {
		if !state.missing && len(state.history.points) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	more := t.others.More + max(0, len(names)-MostOthers)
	for i, name := range names {
		names[i] = fmt.Sprintf("%q", Quote(name))
	}
	exist := strings.Join(names[:min(len(names), MostOthers)], ", ")
	switch {
	case exist == "":
		exist = "and has no other"
	case more > 0:
		exist = fmt.Sprintf("but %s and %d more", exist, more)
	default:
		exist = "but " + exist
	}
	return fmt.Errorf("%w: %s has no subscription %q, %s; it appears when the first replica connects",
		ErrSubscriptionNotFound, topic, subscription, exist)
}
