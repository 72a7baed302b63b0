// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// SpacedWorker asks for the instances of a component no more often than it is told to, and repeats its last answer
// meanwhile: those that ask again and again drop what is not newer. It may be used by several goroutines.
type SpacedWorker struct {
	worker backlog.InstanceSource
	every  time.Duration
	now    func() time.Time

	// mu guards last.
	mu   sync.Mutex
	last map[string]backlog.InstancesSample
}

var _ backlog.InstanceSource = (*SpacedWorker)(nil)

// Spaced asks for instances at most so often.
func (w *Worker) Spaced(every time.Duration) *SpacedWorker {
	return &SpacedWorker{worker: w, every: every, now: w.now, last: map[string]backlog.InstancesSample{}}
}

// FetchInstances is that of Worker.
func (s *SpacedWorker) FetchInstances(ctx context.Context, workload string) (backlog.InstancesSample, error) {
	if sample, fresh := s.recall(workload); fresh {
		return sample, nil
	}
	sample, err := s.worker.FetchInstances(ctx, workload)
	if err != nil {
		return backlog.InstancesSample{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[workload] = sample
	return sample, nil
}

// recall also drops what is not repeated any more.
func (s *SpacedWorker) recall(workload string) (sample backlog.InstancesSample, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	maps.DeleteFunc(s.last, func(_ string, old backlog.InstancesSample) bool { return now.Sub(old.At) >= s.every })
	sample, fresh = s.last[workload]
	return sample, fresh
}
