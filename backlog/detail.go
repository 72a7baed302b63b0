// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

const (
	// fullInterval is how old the consumers of an idle topic may get: nothing is decided by them until there is backlog,
	// and they are most of an answer.
	fullInterval = time.Minute
	// ageInterval between two requests for the oldest message: each reads an entry from storage for each subscription, and
	// an age shows how late work is, which half a minute does not change.
	ageInterval = 30 * time.Second
	// ageStaleAfter bounds how long an age is shown: after three failed requests it is no longer known.
	ageStaleAfter = 3 * ageInterval
	// nearZero entries are few enough for the error of the broker's quick count to decide whether there is work at all: it
	// is a difference of two counters that was seen to drift by a few (pulsar#5202, #15948, #23908). More than that is
	// work.
	nearZero = 10
	// maxSlowInterval bounds how long consumers are left out after answers with them took too long: it doubles from
	// fullInterval, because each such request may hold one of the broker's few web threads for minutes.
	maxSlowInterval = 8 * fullInterval
)

// slowAnswers remembers that answers with consumers take longer than a request may, though others might not.
type slowAnswers struct {
	// requested last, and when.
	requested   Detail
	requestedAt time.Time
	// timeouts of answers with consumers since the last one in time, and until when they are left out.
	timeouts int
	until    time.Time
}

// fail takes in why the request failed. An answer without consumers that takes too long says that all do.
func (s *slowAnswers) fail(reason error) {
	switch {
	case !TimedOut(reason):
	case s.requested.Has(Consumers):
		s.until = s.requestedAt.Add(min(fullInterval<<min(s.timeouts, 8), maxSlowInterval))
		s.timeouts++
	default:
		s.timeouts, s.until = 0, time.Time{}
	}
}

// bound leaves out of a request what may take too long: everything after a failure, and consumers for a while.
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

// nextDetail says what to request: consumers while there is backlog, because then decisions depend on them, and of a
// subscription that has just appeared. Entry counters are another request, so but for the first time they are only
// requested when the answer shows that they are needed; see wantsEntries.
func (t *topicState) nextDetail(now time.Time) Detail {
	detail := Slim
	switch {
	case t.fullAt.IsZero():
		detail = Full
	case now.Sub(t.fullAt) >= fullInterval:
		detail = Consumers
	}
	for _, state := range t.subscriptions {
		if state.bytes > 0 {
			detail |= Bytes
		}
		if state.hasBacklog() || state.hasUnacked() || !state.missing && !state.consumers.known {
			detail |= Consumers
		}
		if state.wantsPrecise() || t.wantsExactCount(state) {
			detail |= Precise
		}
	}
	if t.wantsAge(now) {
		detail |= Age
	}
	return t.slow.bound(detail, t.failure, now)
}

// wantsAge says whether to request the oldest message. Not after a failure: an entry that cannot be read fails the
// whole fetch, and without it all else comes back.
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

// hasBacklog says whether there is backlog, as far as is known.
func (s *subscriptionState) hasBacklog() bool {
	return len(s.history.points) > 0 && s.history.last().total > 0
}

// hasUnacked says whether consumers hold messages, which they may without backlog: those that were skipped or have
// expired. What they hold looks finished once they leave, so that it has to be seen.
func (s *subscriptionState) hasUnacked() bool {
	return len(s.history.points) > 0 && s.history.last().unacked > 0
}

// wantsExactCount says whether a topic in which nothing was published within the window looks empty by quick counts
// alone: one exact count then holds for as long as it stays so, and scaling to zero needs it.
func (t *topicState) wantsExactCount(s *subscriptionState) bool {
	if len(s.history.points) == 0 || s.hasBacklog() || !s.exactAt.IsZero() {
		return false
	}
	rate, err := t.publishRate(s).Value()
	return err == nil && rate == 0
}

// wantsPrecise says whether the quick count is in doubt: it is near zero, or says that there is backlog which no
// consumer gets, though dispatch is not blocked. Once an exact answer brought it near zero, the next ones stay exact,
// or a count that drifted would come and go.
func (s *subscriptionState) wantsPrecise() bool {
	if len(s.history.points) == 0 {
		return false
	}
	last := s.history.last()
	switch {
	case last.total <= nearZero && (last.total > 0 || s.precise):
		return true
	default:
		return last.total > 0 && s.stuck && !last.blocked
	}
}
