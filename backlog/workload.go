// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"time"
)

// workloadState is a workload with tracked instances.
type workloadState struct {
	tenants tenants
	history instancesHistory
	failure error // why they did not answer the last time; nil after an answer
}

func (s *jobs) acquireWorkload(subscription Subscription, tenant string) {
	if subscription.Workload == "" {
		return
	}
	state := s.workloads[subscription.Workload]
	if state == nil {
		state = &workloadState{}
		s.workloads[subscription.Workload] = state
		s.change(WorkloadJob(subscription.Workload), true)
	}
	if state.tenants.add(tenant) {
		s.change(WorkloadJob(subscription.Workload), false)
	}
}

func (s *jobs) releaseWorkload(subscription Subscription, tenant string) {
	if subscription.Workload == "" {
		return
	}
	state := s.workloads[subscription.Workload]
	if !state.tenants.remove(tenant) {
		return
	}
	if len(state.tenants) == 0 {
		delete(s.workloads, subscription.Workload)
	}
	s.change(WorkloadJob(subscription.Workload), false)
}

// RecordInstances records an answer of the instances of a workload. Answers that are not newer than the last are
// dropped, and so are answers that are no longer tracked.
func (s *Store) RecordInstances(workload string, sample InstancesSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		state.history.add(sample, s.rateWindow)
		state.failure = nil
	}
}

// FailInstances records why a workload's instances could not be read. Their last answer stays in use until it is stale.
func (s *Store) FailInstances(workload string, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		state.failure = reason
	}
}

// readInstances returns the state of the instances of a workload. It never fails, since the subscription is known
// without it. mu is held.
func (s *tracked) readInstances(workload string, now time.Time) InstancesReading {
	if workload == "" {
		return unknownInstances(ErrNotRequested)
	}
	state := s.workloads[workload]
	switch {
	case state == nil:
		return unknownInstances(fmt.Errorf("%w: instances of %s", ErrNotTracked, workload))
	case state.history.at.IsZero() && state.failure != nil:
		return unknownInstances(state.failure)
	case state.history.at.IsZero() && !s.instances:
		return unknownInstances(ErrNotRequested)
	case state.history.at.IsZero():
		return unknownInstances(fmt.Errorf("%w: the first answer of the instances of %s is under way", ErrNoData, workload))
	case now.Sub(state.history.at) > s.staleAfter:
		r := unknownInstances(staleError(state.history.at, state.failure))
		r.At = state.history.at
		return r
	}
	return state.history.read()
}
