// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// absentFor is how long the subscription of a target that vanished is followed. With what was measured meanwhile the
// decision is there at once when the target is recreated, and else only after a window of rates.
const absentFor = target.RecreatedWithin

// followed is the subscription to follow: that of the target, or of one that vanished lately.
func (r *PolicyReconciler) followed(outcome plan.Outcome) *backlog.Subscription {
	if subscription := trackable(outcome); subscription != nil {
		return subscription
	}
	p := outcome.Observed.Policy
	if v := outcome.Violation; v == nil || v.Reason != v1alpha1.ReasonTargetNotFound || p.Spec.Mode == v1alpha1.ModeOff {
		return nil
	}
	return r.tracked.vanished(client.ObjectKeyFromObject(p), p.UID, outcome.Now)
}

// vanished is what was followed last for the policy; nil after a while.
func (t *trackedPolicies) vanished(key types.NamespacedName, uid types.UID, now time.Time) *backlog.Subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	memory := t.memories[key]
	if memory == nil || memory.uid != uid || now.Sub(memory.followedAt) >= absentFor {
		return nil
	}
	return memory.followed
}

// present notes what is followed for a target that is there.
func (m *policyMemory) present(subscription *backlog.Subscription, now time.Time) {
	if subscription != nil {
		m.followed, m.followedAt = subscription, now
	}
}

// recreated says that the target is not the object that the last decision on a reading was about.
func (m *policyMemory) recreated(uid string) bool {
	return m.target != "" && uid != "" && m.target != uid
}
