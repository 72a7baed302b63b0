// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Poller fetches every tracked topic once an interval, whoever and however many asked for it.
//
//	tracked -> due -> fetching -> recorded or failed -> due again after interval (±10 %), or later after failures
//
// One goroutine owns the schedule; fetches run beside it, at most PerCluster at once against one cluster, so a
// cluster that hangs slows down none of the others.
type Poller struct {
	config PollerConfig
	// lastTick is when the schedule was last looked at, in Unix nanoseconds; 0 before Run.
	lastTick atomic.Int64
}

// PollerConfig is what a Poller needs.
type PollerConfig struct {
	Store  *Store
	Source Source
	// Interval between two fetches of one topic, from 1s to 5m.
	Interval time.Duration
	// Timeout of one fetch, at most 1m.
	Timeout time.Duration
	// PerCluster is how many fetches may run against one cluster at once, from 1 to 1000.
	PerCluster int
	// Jitter returns a number in [0,1) that spreads the fetches over the interval.
	Jitter func() float64
	// Updated is told, outside of any lock, that there is news of a topic: an answer or a failure.
	Updated func(Topic)
}

// NewPoller checks the configuration.
func NewPoller(config PollerConfig) (*Poller, error) {
	switch {
	case config.Store == nil || config.Source == nil || config.Jitter == nil || config.Updated == nil:
		return nil, fmt.Errorf("poller: Store, Source, Jitter and Updated must be set")
	case config.Interval < time.Second || config.Interval > 5*time.Minute:
		return nil, fmt.Errorf("poller: Interval is %s, must be from 1s to 5m", config.Interval)
	case config.Timeout <= 0 || config.Timeout > time.Minute:
		return nil, fmt.Errorf("poller: Timeout is %s, must be above 0 and at most 1m", config.Timeout)
	case config.PerCluster < 1 || config.PerCluster > 1000:
		return nil, fmt.Errorf("poller: PerCluster is %d, must be from 1 to 1000", config.PerCluster)
	}
	return &Poller{config: config}, nil
}

// maxBackoff bounds how long a failing topic waits for its next fetch, so that recovery is seen within half a minute.
const maxBackoff = 30 * time.Second

// tick is how often the schedule is looked at: a topic is fetched at most this late.
const tick = 100 * time.Millisecond

// Run polls until the context ends, and returns nil then.
func (p *Poller) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	s := newSchedule()
	done := make(chan fetched)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	p.look(s, time.Now())
	for {
		for _, topic := range s.start(p.config.PerCluster) {
			group.Go(func() error {
				result := p.fetch(ctx, topic)
				select {
				case done <- result:
				case <-ctx.Done():
				}
				return nil
			})
		}
		select {
		case <-ctx.Done():
			return group.Wait()
		case now := <-ticker.C:
			p.look(s, now)
		case result := <-done:
			s.finish(result, time.Now(), p.delay)
		}
	}
}

// look brings the schedule up to date with what is tracked and due.
func (p *Poller) look(s *schedule, now time.Time) {
	p.lastTick.Store(now.UnixNano())
	p.config.Store.Expire(now)
	s.follow(p.config.Store, now)
	s.enqueue(now)
}

// fetched is how one fetch ended.
type fetched struct {
	topic Topic
	err   error
}

// fetch reads one topic and tells the store and whoever listens.
func (p *Poller) fetch(ctx context.Context, topic Topic) fetched {
	timed, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	sample, err := p.config.Source.Fetch(timed, topic, p.config.Store.nextDetail(topic, time.Now()))
	switch {
	case err == nil:
		p.config.Store.Record(topic, sample)
	case ctx.Err() != nil: // stopping: says nothing about the topic
		return fetched{topic: topic, err: err}
	default:
		p.config.Store.Fail(topic, err)
	}
	p.config.Updated(topic)
	return fetched{topic: topic, err: err}
}

// delay is the time until the next fetch after so many failures in a row: the interval, doubled for every failure
// after the first and bounded, and spread by ±10 %.
func (p *Poller) delay(failures int) time.Duration {
	wait := p.config.Interval
	for range failures - 1 {
		if wait*2 > max(maxBackoff, p.config.Interval) {
			break
		}
		wait *= 2
	}
	return time.Duration(float64(wait) * (0.9 + 0.2*p.config.Jitter()))
}

// Alive fails when the schedule was not looked at for longer than ten seconds: the loop is stuck.
func (p *Poller) Alive(now time.Time) error {
	const patience = 10 * time.Second
	last := p.lastTick.Load()
	if last == 0 {
		return nil // not started yet: readiness, not liveness
	}
	if age := now.Sub(time.Unix(0, last)); age > patience {
		return fmt.Errorf("poll loop last ran %s ago, more than %s", age.Truncate(time.Second), patience)
	}
	return nil
}
