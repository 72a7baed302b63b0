// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// leaveWithin is how long consumers of removed replicas may take to leave: a grace period of usually 30 s.
const leaveWithin = 2 * time.Minute

// scaleDown is the last decrease of the target's replicas; zero before the first.
type scaleDown struct {
	at      time.Time
	removed int32
	// seen is the number of redelivered messages at the last reconcile, before the one before the decrease, and after the
	// one within leaveWithin; nil while it is unknown.
	seen, before, after *float64
}

// next is the state after another reconcile, with the replicas at the one before; nil before the first.
func (s scaleDown) next(o plan.Observed, replicas *int32) scaleDown {
	if current := *o.Target.Replicas; replicas != nil && current < *replicas {
		s = scaleDown{at: o.Now, removed: *replicas - current, seen: s.seen, before: s.seen}
	}
	if o.Reading == nil {
		return s
	}
	if redelivered, err := o.Reading.Redelivered.Value(); err == nil {
		s.seen = &redelivered
	}
	if o.Now.Sub(s.at) <= leaveWithin {
		s.after = s.seen
	}
	return s
}

// status is nil before the first scale-down.
func (s scaleDown) status() *v1alpha1.ScaleDownResult {
	if s.removed == 0 {
		return nil
	}
	result := &v1alpha1.ScaleDownResult{Time: metav1.NewTime(s.at.Truncate(time.Second)), RemovedReplicas: s.removed}
	if s.before != nil && s.after != nil {
		redelivered := int64(math.Round(min(max(0, *s.after-*s.before), math.MaxInt64/2)))
		result.RedeliveredMessages = &redelivered
	}
	return result
}
