// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import (
	"fmt"
	"time"
)

// workloadState is a workload with tracked instances.
type workloadState struct {
	owners  int
	history instancesHistory
	trouble error // why they could not be asked the last time; nil after an answer
	// inputs of the subscriptions, one of each, and how many owners there are of each: whom to tell.
	inputs map[Topic]int
}

func (s *jobs) acquireWorkload(subscription Subscription) {
	if subscription.Workload == "" {
		return
	}
	state := s.workloads[subscription.Workload]
	if state == nil {
		state = &workloadState{inputs: map[Topic]int{}}
		s.workloads[subscription.Workload] = state
		s.change(WorkloadJob(subscription.Workload), true)
	}
	state.owners++
	if input, some := subscription.firstInput(); some {
		state.inputs[input]++
	}
}

func (s *jobs) releaseWorkload(subscription Subscription) {
	if subscription.Workload == "" {
		return
	}
	state := s.workloads[subscription.Workload]
	if input, some := subscription.firstInput(); some {
		if state.inputs[input]--; state.inputs[input] == 0 {
			delete(state.inputs, input)
		}
	}
	if state.owners--; state.owners == 0 {
		delete(s.workloads, subscription.Workload)
		s.change(WorkloadJob(subscription.Workload), false)
	}
}

// RecordInstances takes in what the instances of a workload said. What is not newer than the last is dropped, and so is
// what is no longer tracked.
func (s *Store) RecordInstances(workload string, sample InstancesSample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		state.history.add(sample, s.rateWindow)
		state.trouble = nil
	}
}

// FailInstances takes in why a workload's instances could not be asked. What they said stays in force until it is
// stale.
func (s *Store) FailInstances(workload string, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state := s.workloads[workload]; state != nil {
		state.trouble = reason
	}
}

// readInstances returns what the instances of a workload say; it never fails, for the subscription is known without. mu
// is held.
func (s *tracked) readInstances(workload string, now time.Time) InstancesReading {
	if workload == "" {
		return noInstances(ErrNotAsked)
	}
	state := s.workloads[workload]
	switch {
	case state == nil:
		return noInstances(fmt.Errorf("%w: instances of %s", ErrNotTracked, workload))
	case state.history.at.IsZero() && state.trouble != nil:
		return noInstances(state.trouble)
	case state.history.at.IsZero() && !s.wanting.Instances:
		return noInstances(ErrNotAsked)
	case state.history.at.IsZero():
		return noInstances(fmt.Errorf("%w: instances of %s are being asked", ErrNoData, workload))
	case now.Sub(state.history.at) > s.staleAfter:
		r := noInstances(staleError(state.history.at, state.trouble))
		r.At = state.history.at
		return r
	}
	return state.history.read()
}

// WorkloadInputs returns whom news of a workload's instances concern, by topic or pattern.
func (f *Feed) WorkloadInputs(workload string) []Topic {
	s := f.store
	s.mu.RLock()
	defer s.mu.RUnlock()
	state := s.workloads[workload]
	if state == nil {
		return nil
	}
	inputs := make([]Topic, 0, len(state.inputs))
	for input := range state.inputs {
		inputs = append(inputs, input)
	}
	return inputs
}
