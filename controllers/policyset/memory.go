// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// retryRefusedEvery is the time between two applies of a refused policy. Permissions, quotas and admission policies
// change without an event.
const retryRefusedEvery = time.Minute

// seenWithin bounds how long a set waits to see its own writes: a user may have undone one before the cache had it.
const seenWithin = 30 * time.Second

type setMemory struct {
	// uid of the set: one that is created again under its name starts without a memory.
	uid types.UID
	// writtenAt is when the status was last written.
	writtenAt time.Time
	// live is the set as the API server answered to the last write, until the cache has that; nil for none.
	live *v1alpha1.AutoscalingPolicySet
	// unseen are the policies written at wroteAt that the cache may not have yet, by name; only their metadata is set.
	unseen  map[string]*v1alpha1.AutoscalingPolicy
	wroteAt time.Time
	// refused policies, by name.
	refused map[string]refusal
	// goneSince is when the object of a policy was first missing, by the name of the policy.
	goneSince map[string]time.Time
}

// latest returns the set from the cache, or the newer one that this process wrote last.
func (m *setMemory) latest(cached *v1alpha1.AutoscalingPolicySet) *v1alpha1.AutoscalingPolicySet {
	if m.live != nil && cluster.IsNewer(m.live, cached) {
		return m.live.DeepCopy()
	}
	m.live = nil
	return cached
}

// wrote remembers the policies that a reconcile wrote.
func (m *setMemory) wrote(done set.Actions, now time.Time) {
	m.unseen, m.wroteAt = map[string]*v1alpha1.AutoscalingPolicy{}, now
	for _, planned := range done.Apply {
		if p := planned.Policy; p.ResourceVersion != "" { // of the API server's answer
			m.unseen[p.Name] = &v1alpha1.AutoscalingPolicy{
				ObjectMeta: metav1.ObjectMeta{UID: p.UID, ResourceVersion: p.ResourceVersion},
			}
		}
	}
	for _, p := range done.Delete {
		m.unseen[p.Name] = &v1alpha1.AutoscalingPolicy{
			ObjectMeta: metav1.ObjectMeta{UID: p.UID, DeletionTimestamp: &metav1.Time{Time: now}},
		}
	}
}

// sees reports whether the policies of the cache include what this process wrote last, or should by now.
func (m *setMemory) sees(policies []v1alpha1.AutoscalingPolicy, now time.Time) bool {
	if len(m.unseen) == 0 {
		return true
	}
	missing := 0
	for _, written := range m.unseen {
		if written.DeletionTimestamp == nil {
			missing++
		}
	}
	for i := range policies {
		live := &policies[i]
		written := m.unseen[live.Name]
		switch {
		case written == nil:
		case written.DeletionTimestamp == nil && !cluster.IsNewer(written, live):
			missing--
		case written.DeletionTimestamp != nil && written.UID == live.UID && live.DeletionTimestamp == nil:
			missing++
		}
	}
	if missing > 0 && now.Sub(m.wroteAt) < seenWithin {
		return false
	}
	m.unseen = nil
	return true
}

// refusal is an apply that the API server refused. It is retried after retryRefusedEvery, or for another spec.
type refusal struct {
	reason     string
	at         time.Time
	generation int64
	live       types.UID
}

// stands reports whether the API server would refuse the apply again.
func (r refusal) stands(policySet *v1alpha1.AutoscalingPolicySet, planned set.PlannedPolicy, now time.Time) bool {
	return r.generation == policySet.Generation && r.live == planned.Policy.UID && now.Sub(r.at) < retryRefusedEvery
}

func (r *Reconciler) memory(cached *v1alpha1.AutoscalingPolicySet) *setMemory {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(cached)
	if m := r.memories[key]; m == nil || m.uid != cached.UID {
		r.memories[key] = &setMemory{uid: cached.UID}
	}
	return r.memories[key]
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
}
