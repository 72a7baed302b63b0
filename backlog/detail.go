// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"errors"
	"fmt"
	"time"
)

const (
	// fullInterval is the maximum age of the consumers of an idle topic: no decision depends on them until there is a
	// backlog, and they are most of an answer.
	fullInterval = time.Minute
	// ageInterval is the interval between two requests for the oldest message. Each reads an entry from storage for each
	// subscription, and half a minute does not change how late work is.
	ageInterval = 30 * time.Second
	// ageStaleAfter bounds the age of a shown value: after three failed requests it is unknown.
	ageStaleAfter = 3 * ageInterval
	// nearZero entries are few enough that the error of the broker's quick count matters. The count is a difference of two
	// counters that was seen to drift by a few (pulsar#15948, #23908). A larger count is work, which is counted exactly
	// once in fullInterval: it was seen to drift by 44,708 too (pulsar#5202, #25037).
	nearZero = 10
	// maxSlowInterval bounds how long consumers are left out after answers with them took too long: the interval doubles
	// from fullInterval, since each such request may block one of the broker's few web threads for minutes.
	maxSlowInterval = 8 * fullInterval
)

// slowAnswers records that answers with consumers take longer than the timeout, or are too large, while others may not.
type slowAnswers struct {
	// requested is the detail of the last request, and requestedAt its time.
	requested   Detail
	requestedAt time.Time
	// timeouts counts failed answers with consumers since the last good one. They are left out until the time in until.
	timeouts int
	until    time.Time
}

// fail records why the request failed. If an answer without consumers takes too long or is too large, all answers are.
func (s *slowAnswers) fail(reason error) {
	switch {
	case !TimedOut(reason) && !errors.Is(reason, ErrTooLarge):
	case s.requested.Has(Consumers):
		s.until = s.requestedAt.Add(min(fullInterval<<min(s.timeouts, 8), maxSlowInterval))
		s.timeouts++
	default:
		s.timeouts, s.until = 0, time.Time{}
	}
}

// bound removes what may take too long from a request: everything after a failure, and consumers for a while.
func (s *slowAnswers) bound(detail Detail, failure error, now time.Time) Detail {
	switch {
	case !now.Before(s.until):
		return detail
	case failure != nil:
		return Slim
	default:
		return detail &^ Consumers
	}
}

// exactCounts compares the quick counts of a backlog with exact ones.
type exactCounts struct {
	// requestedAt is the time of the last request with an exact count.
	requestedAt time.Time
	// until is the time until which all counts are exact, since a quick one was contradicted, or may be why two disagreed.
	until time.Time
}

// wanted reports whether the next count is exact, however late it is after two answers disagreed. The comparison of a
// backlog waits while requests fail, since it takes longer.
func (e exactCounts) wanted(hasBacklog bool, failure error, now time.Time) bool {
	return now.Before(e.until) || errors.Is(failure, ErrImplausible) ||
		hasBacklog && failure == nil && now.Sub(e.requestedAt) >= fullInterval
}

// nextDetail returns what to request: consumers while there is a backlog, since decisions then depend on them, and for
// a subscription that has just appeared. Entry counters are another request, so after the first time they are only
// requested if the answer shows that they are needed; see wantsEntries.
func (t *topicState) nextDetail(now time.Time) Detail {
	detail := Slim
	switch {
	case t.fullAt.IsZero():
		detail = Full
	case now.Sub(t.fullAt) >= fullInterval:
		detail = Consumers
	}
	for _, state := range t.subscriptions {
		if state.bytes {
			detail |= Bytes
		}
		if state.hasBacklog() || state.hasUnacked() || !state.missing && !state.consumers.known {
			detail |= Consumers
		}
		if state.wantsPrecise() || t.wantsExactCount(state) || t.exact.wanted(state.hasBacklog(), t.failure, now) {
			detail |= Precise
		}
	}
	if t.wantsAge(now) {
		detail |= Age
	}
	return t.slow.bound(detail, t.failure, now)
}

// wantsAge reports whether to request the oldest message. It does not after a failure: an entry that cannot be read
// fails the whole request, which succeeds without the age.
func (t *topicState) wantsAge(now time.Time) bool {
	if t.failure != nil || now.Sub(t.ageRequestedAt) < ageInterval {
		return false
	}
	for _, state := range t.subscriptions {
		if state.hasBacklog() {
			return true
		}
	}
	return false
}

func (s *subscriptionState) hasBacklog() bool {
	return len(s.history.points) > 0 && s.history.last().total > 0
}

// hasUnacked reports whether consumers hold messages. They may without a backlog: skipped or expired messages. When the
// consumers leave, these look finished, so they must be observed.
func (s *subscriptionState) hasUnacked() bool {
	return len(s.history.points) > 0 && s.history.last().unacked > 0
}

// wantsExactCount reports whether a topic without publishing in the window looks empty only by quick counts. Scaling to
// zero needs one exact count, which holds while nothing changes.
func (t *topicState) wantsExactCount(s *subscriptionState) bool {
	if len(s.history.points) == 0 || s.hasBacklog() || !s.exactAt.IsZero() {
		return false
	}
	rate, err := t.publishRate(s).Value()
	return err == nil && rate == 0
}

// wantsPrecise reports whether the quick count may be wrong: there is no earlier one to contradict it, it is near zero,
// or there is a backlog that no consumer gets although dispatch is not blocked. After an exact answer near zero, the
// next ones stay exact, since otherwise a count that drifted would come and go.
func (s *subscriptionState) wantsPrecise() bool {
	if len(s.history.points) == 0 {
		return !s.missing
	}
	last := s.history.last()
	switch {
	case last.total <= nearZero && (last.total > 0 || s.precise):
		return true
	default:
		return last.total > 0 && s.stuck && !last.blocked
	}
}

// age is the age of the oldest message of a subscription at the last answer that had it.
type age struct {
	at     time.Time // zero before the first answer
	oldest time.Duration
}

// observe records the age if the answer has it. Without a backlog there is no age to request.
//
// The publish time is from the producer's clock. If that clock is ahead, the messages count as new.
func (a *age) observe(sample TopicSample, answer []*SubscriptionSample) {
	var earliest time.Time
	hasBacklog := false
	for _, one := range answer {
		if one == nil {
			continue
		}
		hasBacklog = hasBacklog || one.BacklogEntries > 0
		published := one.EarliestPublishTime
		if !published.IsZero() && (earliest.IsZero() || published.Before(earliest)) {
			earliest = published
		}
	}
	switch {
	case !hasBacklog, sample.Detail.Has(Age) && earliest.IsZero():
		*a = age{at: sample.At}
	case sample.Detail.Has(Age):
		*a = age{at: sample.At, oldest: max(0, sample.At.Sub(earliest))}
	}
}

// read returns the age in seconds and its time. An age from the last answer is as fresh as the rest of the reading.
func (a *age) read(now, answeredAt time.Time) (Measurement, time.Time) {
	switch {
	case a.at.IsZero():
		return Unknown(ErrNotRequested), time.Time{}
	case now.Sub(a.at) > ageStaleAfter && a.at.Before(answeredAt):
		return Unknown(fmt.Errorf("%w: the oldest message was last read at %s", ErrStale, a.at.UTC().Format(time.RFC3339))),
			a.at
	default:
		return Known(a.oldest.Seconds()), a.at
	}
}
