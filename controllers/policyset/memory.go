// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// retryRefusedEvery is the time between two applies of a refused policy. Permissions, quotas and admission policies
// change without an event.
const retryRefusedEvery = time.Minute

// setMemory is what the reconciler remembers of a set between reconciles.
type setMemory struct {
	// writtenAt is when the status was last written.
	writtenAt time.Time
	// refused policies, by name.
	refused map[string]refusal
	// goneSince is when the object of a policy was first missing, by the name of the policy.
	goneSince map[string]time.Time
}

// refusal is an apply that the API server refused. It is retried after retryRefusedEvery, or for another spec.
type refusal struct {
	reason     string
	at         time.Time
	generation int64
	live       types.UID
}

// stands reports whether the API server would refuse the apply again.
func (r refusal) stands(set *v1alpha1.AutoscalingPolicySet, planned plan.PlannedPolicy, now time.Time) bool {
	return r.generation == set.Generation && r.live == uidOf(planned) && now.Sub(r.at) < retryRefusedEvery
}

// uidOf the existing policy; empty for one to create.
func uidOf(planned plan.PlannedPolicy) types.UID {
	if planned.Policy.UID == nil {
		return ""
	}
	return *planned.Policy.UID
}

func (r *Reconciler) memory(key types.NamespacedName) *setMemory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memories[key] == nil {
		r.memories[key] = &setMemory{}
	}
	return r.memories[key]
}

func (r *Reconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
}
