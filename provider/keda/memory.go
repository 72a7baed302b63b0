// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"cmp"
	"container/list"
	"sync"
	"time"
)

const (
	// forgetAfter is how long a trigger that nobody asks for counts as held. KEDA asks every pollingInterval,
	// 30 s by default, and its HorizontalPodAutoscaler every 15 s.
	forgetAfter = 10 * time.Minute
	// mistakenFor is how long an answer is held because of a mistake of a user, such as a policy that is not there: enough
	// for what deletes an object and makes it anew.
	mistakenFor = 2 * time.Minute
	// maxTriggers remembered; of more the one that was asked for least recently is forgotten. One is about 1 KiB.
	maxTriggers = 50_000
)

// standing is how what is known of a trigger stands.
type standing int

const (
	// unheard: nothing was known of it yet.
	unheard standing = iota
	// known now.
	known
	// held: what was known last is the answer.
	held
	// givenUp: it was held for as long as it may be.
	givenUp
	// mistaken: somebody has to correct something.
	mistaken
)

// memory is what is remembered of the triggers that are asked for. It is safe for concurrent use.
type memory struct {
	holdFor time.Duration
	most    int

	// mu guards all below, and what the entries point to.
	mu      sync.Mutex
	entries map[Trigger]*list.Element // of *entry
	// recent has the entries, the one that was asked for last at the front.
	recent *list.List
	// holding is how many entries are held.
	holding int
}

// entry is what is remembered of a trigger.
type entry struct {
	trigger Trigger
	askedAt time.Time
	// good is the last answer that was known, at goodAt; zero for none.
	good   Sample
	goodAt time.Time
	// wrongSince is since when it has been a mistake without a break; zero while it is none.
	wrongSince time.Time
	// spec was last known; without a metric for none.
	spec     Spec
	standing standing
}

func newMemory(holdFor time.Duration, most int) *memory {
	return &memory{holdFor: holdFor, most: most, entries: map[Trigger]*list.Element{}, recent: list.New()}
}

// touch returns the entry of a trigger that is asked for now. mu is held.
func (m *memory) touch(t Trigger, now time.Time) *entry {
	if at, found := m.entries[t]; found {
		m.recent.MoveToFront(at)
		e := entryAt(at)
		e.askedAt = now
		return e
	}
	for len(m.entries) >= m.most {
		m.drop(m.recent.Back())
	}
	e := &entry{trigger: t, askedAt: now}
	m.entries[t] = m.recent.PushFront(e)
	return e
}

// drop forgets an entry. mu is held.
func (m *memory) drop(at *list.Element) {
	e := entryAt(at)
	m.become(e, unheard)
	delete(m.entries, e.trigger)
	m.recent.Remove(at)
}

// become keeps count of what is held. mu is held.
func (m *memory) become(e *entry, after standing) (before standing) {
	before = e.standing
	e.standing = after
	if before == held {
		m.holding--
	}
	if after == held {
		m.holding++
	}
	return before
}

func entryAt(at *list.Element) *entry {
	e, _ := at.Value.(*entry) // the list has nothing else
	return e
}

// settled is the answer to a trigger, with what was remembered taken into account.
type settled struct {
	sample Sample
	err    error
	// standing now, and before.
	standing, before standing
	// since is when it was known last, and why is why it is not known; of what is held or given up.
	since time.Time
	why   string
}

// isNews says that somebody should be told.
func (s settled) isNews() bool {
	return s.standing != s.before && (s.standing != known || s.before != unheard)
}

// settle remembers an answer that is known, and puts the last one that was in the place of one that is not, for as long
// as holdFor since it was known, or mistakenFor where somebody has to correct something.
func (m *memory) settle(t Trigger, answer Sample, err error, now time.Time) settled {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.entries[t] == nil {
		return settled{err: err} // there is nothing to remember, and what somebody made up must not push out what is known
	}
	e := m.touch(t, now)
	switch {
	case !isMistake(err):
		e.wrongSince = time.Time{}
	case e.wrongSince.IsZero():
		e.wrongSince = now
	}
	if err != nil && e.goodAt.IsZero() {
		return settled{err: err}
	}
	result := e.settle(answer, err, now)
	switch {
	case result.standing == held && err != nil && isMistake(err) && now.Sub(e.wrongSince) >= mistakenFor:
		result.standing, result.sample, result.err = mistaken, Sample{}, err
	case result.standing == held && now.Sub(result.since) >= m.holdFor:
		result.standing, result.sample = givenUp, Sample{}
		result.err = newFault(errGivenUp, "unknown for %s, longer than the last answer is held (%s): %s; "+
			"spec.fallback of the ScaledObject sets the replicas for this case",
			now.Sub(result.since).Truncate(time.Second), m.holdFor, result.why)
	}
	result.before = m.become(e, result.standing)
	return result
}

// settle holds what is not known, for however long. mu of the memory is held.
func (e *entry) settle(answer Sample, err error, now time.Time) settled {
	switch {
	case err != nil:
		return settled{sample: e.good, standing: held, since: e.goodAt, why: err.Error()}
	case !answer.HeldSince.IsZero() || answer.Held != "":
		since := cmp.Or(answer.HeldSince, e.goodAt, now)
		e.good, e.spec = answer, answer.Spec // goodAt stays: it is not known anew
		if e.goodAt.IsZero() {
			e.goodAt = since
		}
		return settled{sample: answer, standing: held, since: since, why: answer.Held}
	default:
		e.good, e.goodAt, e.spec = answer, now, answer.Spec
		return settled{sample: answer, standing: known}
	}
}

// settleSpec remembers one that is known, and returns the last one in the place of one that is not.
func (m *memory) settleSpec(t Trigger, spec Spec, err error, now time.Time) (Spec, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err != nil && m.entries[t] == nil {
		return spec, err
	}
	e := m.touch(t, now)
	switch {
	case err == nil:
		e.spec = spec
	case e.spec.Metric != "":
		return e.spec, nil
	}
	return spec, err
}

// held is how many triggers are answered from what was known last.
func (m *memory) held() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holding
}

// forget what nobody has asked for.
func (m *memory) forget(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := m.recent.Back(); at != nil; {
		e, before := entryAt(at), at.Prev()
		idle := now.Sub(e.askedAt)
		if idle < forgetAfter {
			return
		}
		m.become(e, unheard)
		if idle >= max(forgetAfter, m.holdFor) {
			m.drop(at)
		}
		at = before
	}
}
