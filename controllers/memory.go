// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/metrics"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// policyMemory is the state kept between reconciles of a policy. These never overlap, so it needs no lock.
type policyMemory struct {
	uid types.UID
	// resume is the state after the last decision; nil before the first one of this process.
	resume *policy.State
	// paused is set if the policy was paused, or had no target, when it was last reconciled.
	paused bool
	// history is what the controller wrote, and reported what it found and reported.
	history  plan.History
	reported report.History
	// followed is the subscription of the last target found, and followedAt the time.
	followed   *backlog.Subscription
	followedAt time.Time
	// pace is how often the last decision needs its topics.
	pace backlog.Pace
	// wokeAt is when the controller last wrote replicas to a target at zero, and dueSince when it left the report to a
	// later reconcile, zero if it did not.
	wokeAt, dueSince time.Time
	// cleanupAttempts counts the attempts to restore after the policy was deleted, and cleanedUpAt is when they ended.
	cleanupAttempts int
	cleanedUpAt     time.Time
	// decided and record are replaced, never changed: requests and scrapes read them.
	decided atomic.Pointer[decided]
	record  atomic.Pointer[metrics.Record]
	// written is the policy as the API server answered to the last write, until the cache has that; replaced as well.
	written atomic.Pointer[v1alpha1.AutoscalingPolicy]
}

// decided is the time of the last successful decision, status write included, or of the first reconcile; and why there
// is none since, empty if that is unknown.
type decided struct {
	at  time.Time
	why string
}

// undecided records why a reconcile ended without a decision.
func (m *policyMemory) undecided(why error) {
	m.decided.Store(&decided{m.decided.Load().at, why.Error()})
}

// reportsLater returns the result of a reconcile that leaves the report to a later one; empty if it is written now.
// Where many targets wake at once, all have replicas before the first status, and while policies wait for a decision
// only half of the workers write reports. A leader that dies meanwhile leaves replicas that the next one finds.
func (m *policyMemory) reportsLater(o plan.Observed, actions plan.Actions, result plan.Result,
	status v1alpha1.AutoscalingPolicyStatus, busy bool,
) string {
	since := cmp.Or(m.dueSince, o.Now)
	m.dueSince = time.Time{}
	if result.ApplyFailed != nil || result.ScaleFailed != nil || result.Violation != nil {
		return ""
	}
	// A wake that is repeated before is reported, and one beside KEDA: it would scale to zero what seems to be inactive.
	if actions.Wakes(o) && o.Now.Sub(m.wokeAt) >= 2*soon && o.Actuator.Type != v1alpha1.ActuatorKEDA {
		m.wokeAt = o.Now
	}
	if o.Now.Sub(m.wokeAt) < soon {
		m.reported = m.reported.Unwritten(o.Policy.Status, status)
		return resultWoken
	}
	if !busy || !report.MayWait(o, m.reported, status, since) {
		return ""
	}
	m.dueSince, m.reported = since, m.reported.Unwritten(o.Policy.Status, status)
	m.decided.Store(&decided{at: o.Now})
	return resultUnreported
}

// absentFor is how long the subscription of a missing target stays tracked. Pulsar's function worker deletes and
// recreates a StatefulSet at each update, with retries of up to 5 min. Fresh data lets the controller decide at once
// then.
const absentFor = 5 * time.Minute

// follow returns the subscription to track: that of the target, or of one that vanished lately; nil for none.
func (m *policyMemory) follow(observed plan.Observed) *backlog.Subscription {
	if subscription := observed.Subscription(); subscription != nil {
		m.followed, m.followedAt = new(*subscription), observed.Now // a part of the target would keep all of it
	} else if v := observed.Violation; v == nil || v.Reason != v1alpha1.ReasonTargetNotFound ||
		observed.Now.Sub(m.followedAt) >= absentFor {
		return nil
	}
	followed := *m.followed
	followed.Pace = m.pace
	return &followed
}

// state returns the state to continue from, of this process or of the status; and why the status could not be read.
func (m *policyMemory) state(observed plan.Observed) (policy.State, error) {
	current, paused := observed.CurrentReplicas(), observed.Paused() != ""
	resumed := m.paused && !paused
	m.paused = paused
	switch {
	case m.resume != nil && resumed:
		return m.resume.Continue(current, observed.Now), nil
	case m.resume != nil:
		return *m.resume, nil
	}
	return policy.Resume(observed.Policy.Status.WorkingCheckpoint, current, observed.Now)
}

type policyMemories struct {
	// mu guards byKey.
	mu    sync.Mutex
	byKey map[types.NamespacedName]*policyMemory
}

func newPolicyMemories() *policyMemories {
	return &policyMemories{byKey: map[types.NamespacedName]*policyMemory{}}
}

// of returns the memory of a policy, a new one if the policy was recreated under its name. Reconciles of a policy never
// overlap, and nothing else adds one.
func (m *policyMemories) of(p *v1alpha1.AutoscalingPolicy, now time.Time) *policyMemory {
	if memory := m.existing(p); memory != nil {
		return memory
	}
	memory := &policyMemory{uid: p.UID}
	memory.decided.Store(&decided{at: now})
	m.mu.Lock()
	defer m.mu.Unlock()
	m.byKey[client.ObjectKeyFromObject(p)] = memory
	return memory
}

// latest returns a policy from the cache, or the newer one that this process wrote last. A status is written as a
// difference to the one read, so a stale one would hide a change: 3 -> 7 -> 3 within the lag of a watch would stay 7.
func (m *policyMemories) latest(cached *v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy {
	if written := m.newer(cached); written != nil {
		return written.DeepCopy()
	}
	return cached
}

// newer is what this process wrote to a policy since the version in the cache; nil for nothing, which is forgotten.
func (m *policyMemories) newer(cached *v1alpha1.AutoscalingPolicy) *v1alpha1.AutoscalingPolicy {
	memory := m.existing(cached)
	if memory == nil {
		return nil
	}
	written := memory.written.Load()
	if written != nil && !cluster.IsNewer(written, cached) {
		memory.written.CompareAndSwap(written, nil)
		return nil
	}
	return written
}

// wrote remembers a policy that was written until the cache has it, which may be already. It must not be changed any
// more.
func (m *policyMemories) wrote(ctx context.Context, reader client.Reader, p *v1alpha1.AutoscalingPolicy) {
	memory := m.existing(p)
	if memory == nil {
		return
	}
	memory.written.Store(p)
	var cached v1alpha1.AutoscalingPolicy
	if err := reader.Get(ctx, client.ObjectKeyFromObject(p), &cached); err == nil {
		m.newer(&cached)
	}
}

// cached forgets what was written to a policy once the cache has it; nil if the policy was deleted.
func (m *policyMemories) cached(_ types.NamespacedName, object client.Object) {
	if p, exists := object.(*v1alpha1.AutoscalingPolicy); exists {
		m.newer(p)
	}
}

// existing is the memory of a policy that was reconciled before; nil for none.
func (m *policyMemories) existing(p *v1alpha1.AutoscalingPolicy) *policyMemory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory := m.byKey[client.ObjectKeyFromObject(p)]; memory != nil && memory.uid == p.UID {
		return memory
	}
	return nil
}

// decidedAt is the time of the policy's last decision, and why there is none since; known is false if this process has
// not reconciled it.
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

// records has the last one of each reconciled policy.
func (m *policyMemories) records() []*metrics.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	records := make([]*metrics.Record, 0, len(m.byKey))
	for _, memory := range m.byKey {
		if record := memory.record.Load(); record != nil {
			records = append(records, record)
		}
	}
	return records
}

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

// progress detects hanging reconciles. Queued work needs no count: it implies that all workers run.
type progress struct {
	mu sync.Mutex
	// running reconciles, and when one last began or ended.
	running int
	last    time.Time
}

// add notes that a reconcile begins, 1, or ends, -1.
func (p *progress) add(running int, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.last = p.running+running, now
}

// alive fails when reconciles run and none has begun or ended for stuckAfter: they hang in spite of reconcileTimeout.
// An idle process is alive, and so is one that does not lead.
func (p *progress) alive(now time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if stuck := now.Sub(p.last); p.running > 0 && stuck > stuckAfter {
		return fmt.Errorf("%d reconciles of policies run, and none has ended for %s, more than %s", p.running,
			stuck.Truncate(time.Second), stuckAfter)
	}
	return nil
}
