// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// hangFor is the pause after a request for a worker's status that got no answer in time. The request still blocks a
// thread of its web server: it waits for the lock that the worker holds while it stops instances, about 10 s for one
// that ignores interrupts, and while it deletes a function, for which it calls the broker about its topics. On 4.0.8
// eight such requests were seen to take all threads of a broker with a worker inside, which then waited for one another
// for minutes.
const hangFor = time.Minute

// workerLimits allow one request for a status at a time to each worker, and none to one that hangs.
type workerLimits struct {
	now     func() time.Time
	limiter *limiter
	// hanging has the end of the pause of each worker that hangs.
	hanging *backlog.Cache[string, time.Time]
}

func newWorkerLimits(now func() time.Time) *workerLimits {
	const unpaced = 1_000_000
	return &workerLimits{
		now: now, limiter: newLimiter(1, unpaced, nil), hanging: backlog.NewCache[string, time.Time](hangFor, maxHosts),
	}
}

// do sends the request at its turn.
func (l *workerLimits) do(ctx context.Context, a address, request func() error) error {
	release, err := l.limiter.acquire(ctx, a.base)
	if err != nil {
		return transportFault(a, a.base, err, 0)
	}
	defer release()
	if until, hangs := l.hanging.Get(a.base.Host, l.now()); hangs {
		return backlog.Errorf(backlog.ErrUnavailable,
			"%s did not say in time how instances are, which it does not while it stops or deletes "+
				"some: next request at %s", a.base.Host, until.UTC().Format(time.RFC3339))
	}
	err = request()
	if errors.Is(err, context.DeadlineExceeded) {
		now := l.now()
		l.hanging.Put(a.base.Host, now.Add(hangFor), now)
	}
	return err
}

// maxWorkloads bounds the cached answers.
const maxWorkloads = 10_000

// SpacedWorker requests the instances of a component at most once an interval, and otherwise returns its last answer,
// which callers drop because it is not newer. It is safe for concurrent use.
type SpacedWorker struct {
	worker interface {
		FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error)
	}
	now  func() time.Time
	last *backlog.Cache[string, backlog.InstancesSample]
}

// Spaced requests instances at most once in every.
func (w *Worker) Spaced(every time.Duration) *SpacedWorker {
	return &SpacedWorker{
		worker: w, now: w.now, last: backlog.NewCache[string, backlog.InstancesSample](every, maxWorkloads),
	}
}

// FetchInstances is that of Worker.
func (s *SpacedWorker) FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error) {
	if sample, fresh := s.last.Get(workload, s.now()); fresh {
		return sample, nil
	}
	sample, err := s.worker.FetchInstances(ctx, workload)
	if err != nil {
		return backlog.InstancesSample{}, err
	}
	s.last.Put(workload, sample, sample.At)
	return sample, nil
}
