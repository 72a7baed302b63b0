// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// policyMemory is what one reconcile of a policy hands to the next. Reconciles of a policy never overlap, so it needs
// no lock of its own.
type policyMemory struct {
	uid types.UID
	// resume is the state of the last decision; nil before the first in this process.
	resume *policy.State
	// paused says that nothing was decided since resume: the mode was Off, or there was no target.
	paused  bool
	history plan.History
	// followed is the last subscription of a target that was there, and followedAt when that was.
	followed   *backlog.Subscription
	followedAt time.Time
	// cleanupAttempts counts the attempts to restore what was suspended since the policy was deleted, and cleanedUpAt is
	// when they ended.
	cleanupAttempts int
	cleanedUpAt     time.Time
	// decided and record are replaced, never changed: requests and scrapes read them.
	decided atomic.Pointer[decided]
	record  atomic.Pointer[metrics.Record]
}

// decided is when the policy was last decided for with success, the status included, or reconciled first; and why not
// since. Empty is unknown.
type decided struct {
	at  time.Time
	why string
}

// undecided records why a reconcile ended without a decision.
func (m *policyMemory) undecided(why error) {
	m.decided.Store(&decided{m.decided.Load().at, why.Error()})
}

// absentFor is how long the subscription of a target that vanished is followed: at each update of a function Pulsar's
// function worker deletes its StatefulSet, waits for the pods to end, and recreates it with replicas of its own. With
// what was measured meanwhile the decision is there at once; 5 min are what the worker's own retries take at most.
const absentFor = 5 * time.Minute

// follow is the subscription to follow: that of the target, or of one that vanished lately; nil for none.
func (m *policyMemory) follow(observed plan.Observed) *backlog.Subscription {
	if subscription := observed.Subscription(); subscription != nil {
		m.followed, m.followedAt = subscription, observed.Now
		return subscription
	}
	if v := observed.Violation; v == nil || v.Reason != v1alpha1.ReasonTargetNotFound ||
		observed.Policy.Spec.Mode == v1alpha1.ModePaused || observed.Now.Sub(m.followedAt) >= absentFor {
		return nil
	}
	return m.followed
}

// state is where the last decision left off, in this process or in the one before it; and why what that one wrote
// cannot be read.
func (m *policyMemory) state(observed plan.Observed) (policy.State, error) {
	current, paused := observed.CurrentReplicas(), m.paused
	m.paused = false
	switch {
	case m.resume != nil && paused:
		return m.resume.Continue(current, observed.Now), nil
	case m.resume != nil:
		return *m.resume, nil
	}
	return policy.Resume(observed.Policy.Status, current, observed.Now)
}

// policyMemories are those of all policies.
type policyMemories struct {
	// mu guards byKey.
	mu    sync.Mutex
	byKey map[types.NamespacedName]*policyMemory
}

func newPolicyMemories() *policyMemories {
	return &policyMemories{byKey: map[types.NamespacedName]*policyMemory{}}
}

// of a policy; one that was deleted and recreated under its name starts afresh.
func (m *policyMemories) of(p *v1alpha1.AutoscalingPolicy, now time.Time) *policyMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := client.ObjectKeyFromObject(p)
	if memory := m.byKey[key]; memory != nil && memory.uid == p.UID {
		return memory
	}
	memory := &policyMemory{uid: p.UID}
	memory.decided.Store(&decided{at: now})
	m.byKey[key] = memory
	return memory
}

// decidedAt is when the policy was last decided for, and why not since; known is false for one that this process has
// not reconciled.
func (m *policyMemories) decidedAt(key types.NamespacedName) (at time.Time, why string, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	memory := m.byKey[key]
	if memory == nil {
		return time.Time{}, "", false
	}
	last := memory.decided.Load()
	return last.at, last.why, true
}

// Records implements metrics.Source: of each policy that was reconciled.
func (m *policyMemories) Records() iter.Seq[*metrics.Record] {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := make([]*metrics.Record, 0, len(m.byKey))
	for _, memory := range m.byKey {
		if record := memory.record.Load(); record != nil {
			records = append(records, record)
		}
	}
	return slices.Values(records)
}

// count of the policies that this process decides for.
func (m *policyMemories) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.byKey)
}

func (m *policyMemories) forget(key types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.byKey, key)
}

// progress is whether reconciles end. Work that waits for a worker needs no count: then all of them run.
type progress struct {
	mu sync.Mutex
	// running reconciles, and when one began or ended last.
	running int
	last    time.Time
}

func (p *progress) begin(now time.Time) { p.add(1, now) }

func (p *progress) end(now time.Time) { p.add(-1, now) }

func (p *progress) add(running int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.last = p.running+running, now
}

func (p *progress) alive(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stuck := now.Sub(p.last); p.running > 0 && stuck > stuckAfter {
		return fmt.Errorf("%d reconciles of policies run, and none has ended for %s, more than %s", p.running,
			stuck.Truncate(time.Second), stuckAfter)
	}
	return nil
}
