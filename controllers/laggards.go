// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// laggards are policies for which Auto chose Direct lately because their own HorizontalPodAutoscaler lagged, each with
// the last time. It is safe for concurrent use.
type laggards struct {
	*backlog.Cache[types.NamespacedName, time.Time]
}

// many reports whether so many HorizontalPodAutoscalers lag that the next one would.
func (l laggards) many(now time.Time) bool {
	old := func(at time.Time) bool { return now.Sub(at) >= plan.LagsTogether }
	return len(slices.DeleteFunc(l.Values(), old)) >= plan.ManyLag
}

// see records a policy if its choice is new, and due to the lag of its own HorizontalPodAutoscaler.
func (l laggards) see(key types.NamespacedName, o plan.Observed) {
	chosen, last := o.Actuator, o.Policy.Status.Actuator
	if chosen.DirectUntil == nil || chosen.Lag == nil || last != nil && last.DirectUntil.Equal(chosen.DirectUntil) {
		return
	}
	if _, known := l.Get(key, o.Now); known || !o.ManyLag {
		l.Put(key, o.Now, o.Now)
	}
}
