// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Poller fetches every tracked topic once an interval, see the package comment. An answer that contradicts what is
// known about its topic triggers a second request at once, in another form.
//
// One goroutine owns the schedule. Fetches run concurrently, at most PerCluster against one admin URL, so a cluster
// that hangs does not delay the others, and the namespaces that ask for them take turns.
type Poller struct {
	config Config
	// feed of the Store, since Run.
	feed *backlog.Feed
	// lastTick is when the schedule was last updated, in Unix nanoseconds; 0 before Run.
	lastTick atomic.Int64
}

// Config configures a Poller.
type Config struct {
	Store  *backlog.Store
	Source Source
	// Interval between two fetches of one topic, or of one workload's instances, from 1s to 5m; topics at rest have the
	// Feed's RestInterval if that is longer, and topics that are needed quickly backlog.QuickInterval if that is shorter.
	// New jobs are fetched at once; if a cluster has more than a hundred, the rest is spread over the first interval.
	Interval time.Duration
	// Timeout of one fetch of a topic or a listing, at most 1m.
	Timeout time.Duration
	// PerCluster is the maximum number of concurrent fetches against one admin URL, from 1 to 1000. It excludes instances.
	PerCluster int
	// Jitter returns a number in [0,1) that spreads the fetches over the interval.
	Jitter func() float64
	// Updated is called, outside of any lock, when a topic has an answer or a failure. It must not block. After a listing
	// it is called with each pattern of the namespace, by its text instead of a topic's name. Instances, which are read as
	// often as topics, are no news of their own.
	Updated func(backlog.Topic)
	// Started is called when a fetch begins, with its delay after it was due. It must not block. Nil for none.
	Started func(job backlog.Job, late time.Duration)
	// Implausible is called after the second request about a topic with an implausible answer: it is resolved, unresolved,
	// or has failed. Nil for none.
	Implausible func(result string)

	// Lister lists the namespaces of patterns, every 30s.
	Lister Lister
	// Instances reads the counters of instances. Without it they stay ErrNotRequested.
	Instances InstanceSource
	// Workloads is the maximum number of workloads that are read concurrently, from 1 to 1000; with Instances.
	Workloads int
	// Watcher reports messages of topics that wake replicas before they are due. Nil for none.
	Watcher Watcher
	// Watches is the maximum number of partitions that are watched; 0 without Watcher.
	Watches int
}

// New validates the configuration. Run starts the Poller.
func New(config Config) (*Poller, error) {
	switch {
	case config.Store == nil || config.Source == nil || config.Lister == nil || config.Jitter == nil ||
		config.Updated == nil:
		return nil, errors.New("poller: Store, Source, Lister, Jitter and Updated must be set")
	case config.Interval < time.Second || config.Interval > 5*time.Minute:
		return nil, fmt.Errorf("poller: Interval is %s, must be from 1s to 5m", config.Interval)
	case config.Timeout <= 0 || config.Timeout > time.Minute:
		return nil, fmt.Errorf("poller: Timeout is %s, must be above 0 and at most 1m", config.Timeout)
	case config.PerCluster < 1 || config.PerCluster > 1000:
		return nil, fmt.Errorf("poller: PerCluster is %d, must be from 1 to 1000", config.PerCluster)
	case config.Instances != nil && (config.Workloads < 1 || config.Workloads > 1000):
		return nil, fmt.Errorf("poller: Workloads is %d, must be from 1 to 1000", config.Workloads)
	}
	return &Poller{config: config}, nil
}

// maxBackoff bounds the backoff of a failing job, so that a recovery is seen within half a minute.
const maxBackoff = 30 * time.Second

// tick is how often the schedule is updated, and the maximum delay of a fetch by the schedule.
const tick = 100 * time.Millisecond

// Run polls until the context ends, and then returns nil.
func (p *Poller) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	done, watching := make(chan fetched), make(chan backlog.Job)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	now := time.Now()
	p.feed = p.config.Store.Feed(p.config.Instances != nil)
	s := newSchedule(pace{
		interval: p.config.Interval, rest: max(p.config.Interval, p.feed.RestInterval()),
		quick: min(p.config.Interval, backlog.QuickInterval), jitter: p.config.Jitter, after: p.delay,
	})
	s.watches = p.config.Watches
	p.updateSchedule(s, now)
	for {
		for _, j := range s.start(p.config.PerCluster, p.config.Workloads) {
			if p.config.Started != nil {
				p.config.Started(j, s.late(j, time.Now()))
			}
			limited := s.slots[j].stoppable(ctx)
			group.Go(func() error {
				result := p.fetch(limited, j, watching)
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
			p.updateSchedule(s, now)
		case j := <-watching:
			s.watching(j, true, time.Now())
			p.recordPush(s.slots[j])
		case result := <-done:
			if result.message {
				p.wake(s.slots[result.job])
			}
			if result.err == nil {
				s.follow(result.job, result.sample, time.Now())
			}
			s.finish(result.job, result.err, time.Now())
			p.recordPush(s.slots[result.job])
		}
	}
}

func (p *Poller) updateSchedule(s *schedule, now time.Time) {
	p.lastTick.Store(now.UnixNano())
	s.update(p.config.Store, p.feed, now)
}

// fetched is the result of one fetch, with the answer about a topic, or whether a message ended a watch.
type fetched struct {
	job     backlog.Job
	sample  backlog.TopicSample
	message bool
	err     error
}

// fetch runs one job, and notifies the store and Updated. A fetch that ends because the program does notifies neither.
func (p *Poller) fetch(ctx context.Context, j backlog.Job, watching chan<- backlog.Job) fetched {
	timed, cancel := context.WithTimeout(ctx, p.config.Timeout)
	defer cancel()
	result := fetched{job: j}
	var news []backlog.Topic
	switch j.Kind {
	case backlog.WatchKind:
		result.message, result.err = p.watch(ctx, j, func() {
			select {
			case watching <- j:
			case <-ctx.Done():
			}
		})
	case backlog.TopicKind:
		result.sample, result.err = p.fetchTopic(ctx, timed, j.Topic())
		news = []backlog.Topic{j.Topic()}
	case backlog.NamespaceKind:
		result.err = p.fetchListing(ctx, timed, j.Namespace())
		news = p.feed.PatternsIn(j.Namespace())
	case backlog.WorkloadKind:
		result.err = p.fetchInstances(ctx, j.Workload) // the next answer of a topic is news for both
	}
	if ctx.Err() != nil {
		return result
	}
	for _, input := range news {
		p.config.Updated(input)
	}
	return result
}

// watch runs a job, and calls watching once it sees new messages.
func (p *Poller) watch(ctx context.Context, j backlog.Job, watching func()) (message bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(float64(maxWatch)*(1+p.config.Jitter())/2))
	defer cancel()
	return p.config.Watcher.Watch(ctx, j.Topic(), watching)
}

// stoppable is the context of a job, which ends if the job watches and is dropped.
func (one *slot) stoppable(ctx context.Context) context.Context {
	if one.topic != nil {
		ctx, one.stop = context.WithCancel(ctx)
	}
	return ctx
}

func (p *Poller) fetchTopic(ctx, timed context.Context, topic backlog.Topic) (backlog.TopicSample, error) {
	request := p.feed.NextRequest(topic, time.Now())
	sample, err := p.config.Source.Fetch(timed, topic, request)
	if reason := p.feed.CheckPlausible(topic, sample, err); reason != nil {
		p.config.Updated(topic) // it may wake a replica
		second, cancel := context.WithTimeout(ctx, p.config.Timeout)
		defer cancel()
		timed = second
		sample, err = p.fetchSecond(timed, topic, request, sample, reason)
	}
	if err == nil && !request.Detail.Has(backlog.Entries) && p.feed.WantsEntries(topic, sample) {
		sample = p.config.Source.AddEntries(timed, topic, sample)
	}
	switch {
	case err == nil:
		p.config.Store.Record(topic, sample)
	case ctx.Err() == nil:
		p.config.Store.Fail(topic, err)
	}
	return sample, err
}

func (p *Poller) fetchListing(ctx, timed context.Context, namespace backlog.Namespace) error {
	at := time.Now()
	listing := p.feed.NextListing(namespace)
	err := p.config.Lister.List(timed, namespace, listing.Add)
	if err == nil || ctx.Err() == nil {
		p.config.Store.RecordListing(listing, at, err)
	}
	return err
}

func (p *Poller) fetchInstances(ctx context.Context, workload backlog.Workload) error {
	sample, err := p.config.Instances.FetchInstances(ctx, workload)
	if err == nil || ctx.Err() == nil {
		p.config.Store.RecordInstances(workload, sample, err)
	}
	return err
}

// delay is the time until a job's next fetch after a number of consecutive failures: its interval without a failure.
// After failures it is the interval of topics, doubled for each failure after the first, bounded, and spread by ±10 %,
// since many jobs fail at the same time.
func (p *Poller) delay(kind backlog.JobKind, failures int) time.Duration {
	wait, most := p.config.Interval, max(maxBackoff, p.config.Interval)
	switch {
	case kind == backlog.WatchKind:
		wait, most = backlog.QuickInterval, maxWatchBackoff
	case failures == 0 && kind == backlog.NamespaceKind:
		return backlog.ListInterval
	}
	if failures == 0 {
		return wait
	}
	for range failures - 1 {
		if wait*2 > most {
			break
		}
		wait *= 2
	}
	return time.Duration(float64(wait) * (0.9 + 0.2*p.config.Jitter()))
}

// Alive fails if the schedule was not updated for more than ten seconds: the loop is stuck.
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

// fetchSecond returns the second answer about a topic after the first, if there is one, was implausible for the reason,
// or why neither is accepted. There is no third request.
//
// It uses the other of the two calls that read a topic, with or without the age, and an exact count: neither a cache in
// between nor a counter that drifted gives the same answer again.
func (p *Poller) fetchSecond(ctx context.Context, topic backlog.Topic, request backlog.Request,
	first backlog.TopicSample, reason error,
) (backlog.TopicSample, error) {
	request.Detail = (request.Detail | backlog.Precise) ^ backlog.Age
	second, err := p.config.Source.Fetch(ctx, topic, request)
	if err == nil {
		err = p.feed.CheckSecond(topic, first, second)
	}
	result := Resolved
	switch {
	case err == nil:
	case errors.Is(err, backlog.ErrImplausible):
		second, result = backlog.TopicSample{}, Unresolved
	default:
		second, result = backlog.TopicSample{}, Failed
		err = fmt.Errorf("%w (requested because of %w)", err, reason)
	}
	if p.config.Implausible != nil {
		p.config.Implausible(result)
	}
	return second, err
}

// Results of a second request.
const (
	Resolved   = "resolved"
	Unresolved = "unresolved"
	Failed     = "failed"
)

// Source fetches the current state of a topic.
//
// An answer that lacks some partitions reports this, and one that lacks all is backlog.ErrPartial. Every error wraps
// one of the reasons of package backlog and names the fix.
type Source interface {
	Fetch(ctx context.Context, topic backlog.Topic, request backlog.Request) (backlog.TopicSample, error)
	// AddEntries adds the available entry counters to a sample of the topic that has none.
	AddEntries(ctx context.Context, topic backlog.Topic, sample backlog.TopicSample) backlog.TopicSample
}

// Lister lists the topics of a namespace, for subscriptions with patterns: it calls add with their complete names
// without partition suffixes, in no order, and perhaps several times. They include partitioned topics without a loaded
// partition, and exclude system topics. After an error some are missing.
type Lister interface {
	List(ctx context.Context, namespace backlog.Namespace, add func(topic string)) error
}

// Watcher waits for the next message of a partition, without creating the topic or a durable subscription.
//
// Watch calls watching once it sees every message from then on. It returns after the first one, and also when it cannot
// watch any longer or the context has ended; message tells which. An error means that it never watched.
type Watcher interface {
	Watch(ctx context.Context, partition backlog.Topic, watching func()) (message bool, err error)
}

// InstanceSource reads the counters of the instances of a workload, in a bounded time of its own.
type InstanceSource interface {
	FetchInstances(ctx context.Context, workload backlog.Workload) (backlog.InstancesSample, error)
}
