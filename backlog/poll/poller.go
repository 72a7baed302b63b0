// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poll

import (
	"context"
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
	lastTick           atomic.Int64
	implausibleAnswers implausibleAnswers
}

// Config configures a Poller.
type Config struct {
	Store  *backlog.Store
	Source Source
	// Interval between two fetches of one topic, or of one workload's instances, from 1s to 5m. New jobs are fetched at
	// once; if a cluster has more than a hundred, the rest is spread over the first interval.
	Interval time.Duration
	// Timeout of one fetch, at most 1m. A bulk answer, which may have some 25 MB from each broker, has 1m.
	Timeout time.Duration
	// PerCluster is the maximum number of concurrent fetches against one admin URL, from 1 to 1000. It excludes instances
	// and the bulk answer, which takes longer than the others can wait.
	PerCluster int
	// Jitter returns a number in [0,1) that spreads the fetches over the interval.
	Jitter func() float64
	// Updated is called, outside of any lock, when a topic has an answer or a failure. It must not block. After a listing
	// it is called with each pattern of the namespace, by its text instead of a topic's name. Instances, which are read as
	// often as topics, are no news of their own.
	Updated func(backlog.Topic)
	// Started is called when a fetch begins, with its delay after it was due. It must not block. Nil for none.
	Started func(job backlog.Job, late time.Duration)

	// Lister lists namespaces, every 30s. Without one, readings of subscriptions with patterns are ErrUnsupported.
	Lister Lister
	// Instances reads the counters of instances. Without it they stay ErrNotRequested.
	Instances InstanceSource
	// Workloads is the maximum number of workloads that are read concurrently, from 1 to 1000; with Instances.
	Workloads int
	// Bulk saves fetches of topics without work; nil for none.
	Bulk BulkSource
	// BulkInterval between two bulk answers of a cluster, from 10s to 10m; with Bulk.
	BulkInterval time.Duration
	// QuietInterval between two fetches of a topic that has been without work for this long and that bulk answers confirm,
	// from Interval to 1h; with Bulk. The topic is fetched earlier if it would become stale: bulk answers save nothing
	// unless the Store's staleAfter exceeds the sum of their interval and their age.
	QuietInterval time.Duration
}

// New validates the configuration.
func New(config Config) (*Poller, error) {
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
	if err := config.checkSources(); err != nil {
		return nil, err
	}
	return &Poller{config: config}, nil
}

// checkSources validates the settings of the optional sources.
func (config *Config) checkSources() error {
	switch {
	case config.Instances != nil && (config.Workloads < 1 || config.Workloads > 1000):
		return fmt.Errorf("poller: Workloads is %d, must be from 1 to 1000", config.Workloads)
	case config.Bulk != nil && (config.BulkInterval < 10*time.Second || config.BulkInterval > 10*time.Minute):
		return fmt.Errorf("poller: BulkInterval is %s, must be from 10s to 10m", config.BulkInterval)
	case config.Bulk != nil && (config.QuietInterval < config.Interval || config.QuietInterval > time.Hour):
		return fmt.Errorf("poller: QuietInterval is %s, must be from Interval (%s) to 1h", config.QuietInterval,
			config.Interval)
	}
	return nil
}

// maxBackoff bounds the backoff of a failing job, so that a recovery is seen within half a minute.
const maxBackoff = 30 * time.Second

// bulkTimeout bounds a bulk answer. No decision depends on it.
const bulkTimeout = time.Minute

// tick is how often the schedule is updated, and the maximum delay of a fetch by the schedule.
const tick = 100 * time.Millisecond

// Run polls until the context ends, and then returns nil.
func (p *Poller) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	s := newSchedule(pace{interval: p.config.Interval, jitter: p.config.Jitter, after: p.delay})
	done := make(chan fetched)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	now := time.Now()
	p.feed = p.config.Store.Feed(backlog.Extras{Instances: p.config.Instances != nil, Bulk: p.config.Bulk != nil})
	p.updateSchedule(s, now)
	for {
		for _, j := range s.start(p.config.PerCluster, p.config.Workloads) {
			if p.config.Started != nil {
				p.config.Started(j, s.late(j, time.Now()))
			}
			group.Go(func() error {
				result := p.fetch(ctx, j)
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
		case result := <-done:
			p.finish(s, result, time.Now())
		}
	}
}

// updateSchedule updates the schedule with the jobs that are tracked and due.
func (p *Poller) updateSchedule(s *schedule, now time.Time) {
	p.lastTick.Store(now.UnixNano())
	p.config.Store.Expire(now)
	s.apply(p.feed.Changes(), now)
	s.enqueue(now)
}

// fetched is the result of one fetch.
type fetched struct {
	job       backlog.Job
	err       error
	confirmed []backlog.Confirmation // by a bulk answer
}

// fetch runs one job, and notifies the store and Updated. A fetch that ends because the program does notifies neither.
func (p *Poller) fetch(ctx context.Context, j backlog.Job) fetched {
	timeout := p.config.Timeout
	if j.Kind == backlog.BulkKind {
		timeout = bulkTimeout
	}
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	result := fetched{job: j}
	var news []backlog.Topic
	switch j.Kind {
	case backlog.TopicKind:
		result.err = p.fetchTopic(ctx, timed, j.Topic())
		news = []backlog.Topic{j.Topic()}
	case backlog.NamespaceKind:
		result.err = p.fetchListing(ctx, timed, j.Namespace())
		news = p.feed.PatternsIn(j.Namespace())
	case backlog.WorkloadKind:
		result.err = p.fetchInstances(ctx, timed, j.Name) // the next answer of a topic is news for both
	case backlog.BulkKind:
		sample, err := p.config.Bulk.FetchBulk(timed, j.Cluster)
		if result.err = err; err == nil {
			result.confirmed = p.feed.RecordBulk(j.Cluster, sample)
		}
		for _, confirmation := range result.confirmed {
			news = append(news, confirmation.Topic)
		}
	}
	if ctx.Err() != nil {
		return result
	}
	for _, input := range news {
		p.config.Updated(input)
	}
	return result
}

func (p *Poller) fetchTopic(ctx, timed context.Context, topic backlog.Topic) error {
	request := p.feed.NextRequest(topic, time.Now())
	sample, err := p.config.Source.Fetch(timed, topic, request)
	if reason := p.feed.CheckPlausible(topic, sample, err); reason != nil {
		p.config.Updated(topic) // it may wake a replica
		second, cancel := context.WithTimeout(ctx, p.config.Timeout)
		defer cancel()
		timed = second
		first := implausibleAnswer{request: request, sample: sample, reason: reason}
		sample, err = first.fetchSecond(timed, p, topic)
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
	return err
}

func (p *Poller) fetchListing(ctx, timed context.Context, namespace backlog.Namespace) error {
	at := time.Now()
	listing := p.feed.NextListing(namespace)
	err := p.list(timed, namespace, listing)
	switch {
	case err == nil:
		p.config.Store.RecordListing(listing, at)
	case ctx.Err() == nil:
		p.config.Store.FailListing(namespace, err)
	}
	return err
}

func (p *Poller) list(ctx context.Context, namespace backlog.Namespace, listing *backlog.Listing) error {
	if p.config.Lister == nil {
		return fmt.Errorf("%w: topic patterns in namespace %s: this program lists no namespaces; name the topics",
			backlog.ErrUnsupported, namespace.Name)
	}
	return p.config.Lister.List(ctx, namespace, listing.Add)
}

func (p *Poller) fetchInstances(ctx, timed context.Context, workload string) error {
	sample, err := p.config.Instances.FetchInstances(timed, workload)
	switch {
	case err == nil:
		p.config.Store.RecordInstances(workload, sample)
	case ctx.Err() == nil:
		p.config.Store.FailInstances(workload, err)
	}
	return err
}

// finish records the result of a fetch.
func (p *Poller) finish(s *schedule, result fetched, now time.Time) {
	s.finish(result.job, result.err, now)
	switch {
	case result.err != nil:
	case result.job.Kind == backlog.BulkKind:
		p.postpone(s, result, now)
	case result.job.Kind == backlog.TopicKind:
		p.postponeAgain(s, result.job, now)
	}
}

// delay is the time until a job's next fetch after a number of consecutive failures: its interval without a failure.
// After failures it is the interval of topics, doubled for each failure after the first, bounded, and spread by ±10 %,
// since many jobs fail at the same time.
func (p *Poller) delay(kind backlog.JobKind, failures int) time.Duration {
	wait := p.config.Interval
	switch {
	case kind == backlog.BulkKind:
		wait = p.config.BulkInterval // no decision depends on it
	case kind == backlog.NamespaceKind && failures == 0:
		wait = backlog.ListInterval
	default:
		for range failures - 1 {
			if wait*2 > max(maxBackoff, p.config.Interval) {
				break
			}
			wait *= 2
		}
	}
	if failures == 0 {
		return wait
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
