// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"cmp"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/answer"
)

const (
	// requestedWithin is how long after its last request a trigger counts as held. KEDA requests every pollingInterval,
	// 30 s by default, and its HorizontalPodAutoscaler every 15 s.
	requestedWithin = 10 * time.Minute
	// misconfiguredFor is how long an answer is held because of a mistake of a user, such as a policy that is not there:
	// enough for deleting an object and recreating it.
	misconfiguredFor = 2 * time.Minute
	// maxTriggers with a last answer that is kept; beyond them the least recently requested one is evicted. One is about
	// 1 KiB.
	maxTriggers = 50_000
)

// standing is how what is known of a trigger stands.
type standing int

const (
	// unseen: nothing was known of it yet.
	unseen standing = iota
	// known now.
	known
	// held: what was known last is the answer, or the replicas that run.
	held
	// expired: it was held for as long as it may be.
	expired
	// misconfigured: the user has to correct the trigger or create what it names.
	misconfigured
)

// lastAnswers are the last known answers to the triggers that are requested. They are safe for concurrent use.
type lastAnswers struct {
	holdFor time.Duration
	now     func() time.Time

	// mu makes reading and replacing an answer one step; the cache has a lock of its own.
	mu sync.Mutex
	// answers has a lastAnswer for each Trigger. Both are values, so what is read does not change.
	answers *cache.LRUExpireCache
}

// lastAnswer is the last answer to a trigger.
type lastAnswer struct {
	requestedAt time.Time
	// sample was known last, at knownAt; both zero for none.
	sample  Sample
	knownAt time.Time
	// unknownSince is since when running replicas have stood for the first answer; zero for never.
	unknownSince time.Time
	// misconfiguredSince is since when it has been misconfigured without a break; zero while it is not.
	misconfiguredSince time.Time
	// spec was last known; without a metric for none.
	spec     Spec
	standing standing
}

// clock makes a function the clock of a cache.
type clock func() time.Time

// Now implements cache.Clock.
func (c clock) Now() time.Time { return c() }

func newLastAnswers(holdFor time.Duration, most int, now func() time.Time) *lastAnswers {
	return &lastAnswers{holdFor: holdFor, now: now, answers: cache.NewLRUExpireCacheWithClock(most, clock(now))}
}

// of returns the last answer to a trigger, if there is one.
func (l *lastAnswers) of(t Trigger) (last lastAnswer, found bool) {
	value, _ := l.answers.Get(t)
	last, found = value.(lastAnswer)
	return last, found
}

// keep replaces the last answer of a trigger, which is requested now. mu is held.
func (l *lastAnswers) keep(t Trigger, last lastAnswer, now time.Time) {
	last.requestedAt = now
	l.answers.Add(t, last, max(requestedWithin, l.holdFor))
}

// resolved is the answer to a trigger, with the last known one taken into account.
type resolved struct {
	sample Sample
	err    error
	// standing now, and before.
	standing, before standing
	// since is when it was known last, and why is why it is not known; of what is held or expired.
	since time.Time
	why   string
}

// isTransition says that the change is worth a log line.
func (r resolved) isTransition() bool {
	return r.standing != r.before && (r.standing != known || r.before != unseen)
}

// resolve keeps an answer that is known, and returns the last one in the place of one that is not, for as long as
// holdFor since it was known, or misconfiguredFor where the user has to correct something. While none was ever known,
// found with an error is the answer instead, if it is active.
func (l *lastAnswers) resolve(t Trigger, found Sample, err error, now time.Time) resolved {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, seen := l.of(t)
	unanswered := err != nil && last.knownAt.IsZero()
	if unanswered && !seen && !found.Active {
		return resolved{err: err} // nothing is kept of it: made-up triggers must not evict real ones
	}
	switch {
	case !answer.IsMisconfigured(err):
		last.misconfiguredSince = time.Time{}
	case last.misconfiguredSince.IsZero():
		last.misconfiguredSince = now
	}
	if unanswered && !found.Active {
		l.keep(t, last, now)
		return resolved{err: err}
	}
	last, result := last.hold(found, err, now)
	switch {
	case result.standing != held:
	case answer.IsMisconfigured(err) && now.Sub(last.misconfiguredSince) >= misconfiguredFor:
		result.standing, result.sample, result.err = misconfigured, Sample{}, err
	case now.Sub(result.since) >= l.holdFor:
		result.standing, result.sample = expired, Sample{}
		result.err = answer.Errorf(answer.Unknown, "unknown for %s, longer than the last answer is held (%s): %s; "+
			"spec.fallback of the ScaledObject sets the replicas for this case",
			now.Sub(result.since).Truncate(time.Second), l.holdFor, result.why)
	}
	result.before, last.standing = last.standingAt(now), result.standing
	l.keep(t, last, now)
	return result
}

// standingAt is how the trigger stood, which is forgotten when it was not requested for a while.
func (a lastAnswer) standingAt(now time.Time) standing {
	if now.Sub(a.requestedAt) >= requestedWithin {
		return unseen
	}
	return a.standing
}

// hold returns what to keep of the answer, and the answer to give: the last one where it is not known.
func (a lastAnswer) hold(found Sample, err error, now time.Time) (lastAnswer, resolved) {
	switch {
	case err != nil && a.knownAt.IsZero():
		a.unknownSince = cmp.Or(a.unknownSince, now)
		return a, resolved{sample: found, standing: held, since: a.unknownSince, why: err.Error()}
	case err != nil:
		return a, resolved{sample: a.sample, standing: held, since: a.knownAt, why: err.Error()}
	case !found.HeldSince.IsZero() || found.Held != "":
		since := cmp.Or(found.HeldSince, a.knownAt, now)
		a.sample, a.spec = found, found.Spec // knownAt stays: it is not known again
		if a.knownAt.IsZero() {
			a.knownAt = since
		}
		return a, resolved{sample: found, standing: held, since: since, why: found.Held}
	default:
		a.sample, a.knownAt, a.spec = found, now, found.Spec
		return a, resolved{sample: found, standing: known}
	}
}

// resolveSpec keeps one that is known, and returns the last one in the place of one that is not.
func (l *lastAnswers) resolveSpec(t Trigger, spec Spec, err error, now time.Time) (Spec, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, found := l.of(t)
	if err != nil && !found {
		return spec, err
	}
	switch {
	case err == nil:
		last.spec = spec
	case last.spec.Metric != "":
		spec, err = last.spec, nil
	}
	l.keep(t, last, now)
	return spec, err
}

// held is how many triggers are answered from what was known last. Reading them in the order of their keys leaves the
// order of eviction as it is.
func (l *lastAnswers) held() (count int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for _, key := range l.answers.Keys() {
		value, _ := l.answers.Get(key)
		if last, found := value.(lastAnswer); found && last.standingAt(now) == held {
			count++
		}
	}
	return count
}
