// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// laggards are policies for which Auto chose Direct lately because their own HorizontalPodAutoscaler lagged. It is safe
// for concurrent use.
type laggards struct {
	mu sync.Mutex
	// lagged has at most plan.ManyLag policies, each with the last time.
	lagged map[types.NamespacedName]time.Time
}

// many reports whether so many HorizontalPodAutoscalers lag that the next one would.
func (l *laggards) many(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.lagged, func(_ types.NamespacedName, at time.Time) bool {
		return now.Sub(at) >= plan.LagsTogether
	})
	return len(l.lagged) >= plan.ManyLag
}

// see records a policy if its choice is new, and due to the lag of its own HorizontalPodAutoscaler.
func (l *laggards) see(key types.NamespacedName, o plan.Observed) {
	chosen, last := o.Actuator, o.Policy.Status.Actuator
	if chosen.DirectUntil == nil || chosen.Lag == nil || last != nil && last.DirectUntil.Equal(chosen.DirectUntil) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.lagged[key]; known || len(l.lagged) < plan.ManyLag {
		l.lagged[key] = o.Now
	}
}
