// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"cmp"
	"sync"
	"time"
	"unique"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/provider/response"
)

const (
	// requestedWithin is how long after its last request a trigger counts as held. KEDA requests every pollingInterval, 30
	// s by default, and its HorizontalPodAutoscaler every 15 s.
	requestedWithin = 10 * time.Minute
	// misconfiguredFor is how long a sample is held after a mistake of a user, such as a missing policy: enough to delete
	// an object and recreate it.
	misconfiguredFor = 2 * time.Minute
	// maxTriggers bounds the triggers with a kept sample; beyond it the least recently requested one is evicted. One is
	// about 1 KiB.
	maxTriggers = 50_000
)

type state int

const (
	// unseen: never known.
	unseen state = iota
	// known now.
	known
	// held: the last known sample, or the running replicas, are served.
	held
	// expired: held for the maximum time.
	expired
	// misconfigured: the user has to correct the trigger or create what it names.
	misconfigured
	// erred: answered with an error, since there is nothing to hold.
	erred
)

// lastSamples are the last known samples of the requested triggers. They are safe for concurrent use.
type lastSamples struct {
	holdFor time.Duration
	now     func() time.Time

	// mu makes reading and replacing an entry atomic; the cache has a lock of its own.
	mu sync.Mutex
	// samples are replaced and never changed.
	samples *backlog.Cache[unique.Handle[Trigger], *lastSample]
}

type lastSample struct {
	trigger     unique.Handle[Trigger]
	requestedAt time.Time
	// sample was known last, at knownAt; both zero for none.
	sample  Sample
	knownAt time.Time
	// unknownSince is since when running replicas are served in place of a first sample; zero for never.
	unknownSince time.Time
	// misconfiguredSince is since when it has been misconfigured without a break; zero if it is not.
	misconfiguredSince time.Time
	// spec is the last known one; without a metric for none.
	spec  Spec
	state state
}

func newLastSamples(holdFor time.Duration, most int, now func() time.Time) *lastSamples {
	return &lastSamples{
		holdFor: holdFor, now: now, // the last moment needs the entry: then its hold ends
		samples: backlog.NewCache[unique.Handle[Trigger], *lastSample](max(requestedWithin, holdFor)+1, most),
	}
}

// of returns a copy of the entry of a trigger, if there is one.
func (l *lastSamples) of(t unique.Handle[Trigger], now time.Time) (last lastSample, found bool) {
	kept, found := l.samples.Get(t, now)
	if found {
		last = *kept
	}
	return last, found
}

// keep replaces the entry of a trigger and marks it as requested. mu is held.
func (l *lastSamples) keep(t unique.Handle[Trigger], last lastSample, now time.Time) {
	last.trigger, last.requestedAt = t, now
	l.samples.Put(t, &last, now)
}

// resolved is the result of a trigger, in which the last known sample may replace an unknown one.
type resolved struct {
	sample Sample
	err    error
	// state now and previously.
	state, before state
	// since is when it was last known, and why is the reason since then; for held and expired.
	since time.Time
	why   string
}

func (r resolved) isTransition() bool {
	return r.state != r.before && (r.state != known || r.before != unseen)
}

// resolve keeps a known sample. In place of an unknown one it returns the last known, up to holdFor after that, or
// misconfiguredFor if the user has to correct something. Without any, it returns found despite the error, if found is
// active.
func (l *lastSamples) resolve(t Trigger, found Sample, err error, now time.Time) resolved {
	key := unique.Make(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	last, seen := l.of(key, now)
	unanswered := err != nil && last.knownAt.IsZero()
	if unanswered && !seen && !found.Active {
		return resolved{err: err} // not kept: invented triggers must not evict real ones
	}
	switch {
	case !response.IsMisconfigured(err):
		last.misconfiguredSince = time.Time{}
	case last.misconfiguredSince.IsZero():
		last.misconfiguredSince = now
	}
	if unanswered && !found.Active {
		last.state = erred
		l.keep(key, last, now)
		return resolved{err: err}
	}
	last, result := last.hold(found, err, now)
	switch {
	case result.state != held:
	case response.IsMisconfigured(err) && now.Sub(last.misconfiguredSince) >= misconfiguredFor:
		result.state, result.sample, result.err = misconfigured, Sample{}, err
	case now.Sub(result.since) >= l.holdFor:
		result.state, result.sample = expired, Sample{}
		result.err = response.Errorf(response.Unknown, "unknown for %s, longer than the last value is held (%s): %s; "+
			"spec.fallback of the ScaledObject sets the replicas for this case",
			now.Sub(result.since).Truncate(time.Second), l.holdFor, result.why)
	}
	result.before, last.state = last.stateAt(now), result.state
	l.keep(key, last, now)
	return result
}

// stateAt is the state of the trigger; unseen if it was not requested for a while.
func (a lastSample) stateAt(now time.Time) state {
	if now.Sub(a.requestedAt) >= requestedWithin {
		return unseen
	}
	return a.state
}

// hold returns the entry to keep, and the result: the last known sample if the new one is unknown.
func (a lastSample) hold(found Sample, err error, now time.Time) (lastSample, resolved) {
	switch {
	case err != nil && a.knownAt.IsZero():
		a.unknownSince = cmp.Or(a.unknownSince, now)
		return a, resolved{sample: found, state: held, since: a.unknownSince, why: err.Error()}
	case err != nil:
		return a, resolved{sample: a.sample, state: held, since: a.knownAt, why: err.Error()}
	case !found.HeldSince.IsZero() || found.Held != "":
		since := cmp.Or(found.HeldSince, a.knownAt, now)
		if since.Before(a.knownAt) { // the measurement in a status may be minutes older
			since = a.knownAt
		}
		a.sample, a.knownAt, a.spec = found, since, found.Spec
		return a, resolved{sample: found, state: held, since: since, why: found.Held}
	default:
		a.sample, a.knownAt, a.spec = found, now, found.Spec
		return a, resolved{sample: found, state: known}
	}
}

// resolveSpec keeps a known spec, and returns the last known one in place of an unknown one.
func (l *lastSamples) resolveSpec(t Trigger, spec Spec, err error, now time.Time) (Spec, error) {
	key := unique.Make(t)
	l.mu.Lock()
	defer l.mu.Unlock()
	last, found := l.of(key, now)
	if err != nil && !found {
		return spec, err
	}
	switch {
	case err == nil:
		last.spec = spec
	case last.spec.Metric != "":
		spec, err = last.spec, nil
	}
	l.keep(key, last, now)
	return spec, err
}

func (l *lastSamples) held() (count int) {
	now := l.now()
	for _, last := range l.samples.Values() {
		if last.stateAt(now) == held {
			count++
		}
	}
	return count
}
