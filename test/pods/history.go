// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Sample is the state of a Function, or of another object with pods, from Time on.
type Sample struct {
	Time time.Time
	// Desired is spec.replicas of the Function, 0 after its deletion.
	Desired int
	// Started counts requested replicas that have not ended, which cost money. Ready counts those that consume.
	Started, Ready int
}

// history is the history of one Function, a step function of time.
type history struct{ samples []Sample }

// note applies change to the last state, and appends a state that differs.
func (h *history) note(now time.Time, change func(*Sample)) {
	last := h.last()
	next := last
	change(&next)
	if next == last {
		return
	}
	next.Time = now
	h.samples = append(h.samples, next)
}

func (h *history) last() Sample {
	if len(h.samples) == 0 {
		return Sample{}
	}
	return h.samples[len(h.samples)-1]
}

// note adds a change of a unit's object. Callers hold mu.
func (r *Runner) note(u *unit, change func(*Sample)) {
	r.history(u.workload.Of).note(time.Now(), change)
}

// history returns that of an object. Callers hold mu.
func (r *Runner) history(object client.ObjectKey) *history {
	h := r.histories[object]
	if h == nil {
		h = &history{}
		r.histories[object] = h
	}
	return h
}

// Desire records the desired replicas of an object.
func (r *Runner) Desire(object client.ObjectKey, replicas int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history(object).note(time.Now(), func(s *Sample) { s.Desired = replicas })
}

// Last is the present state of the object.
func (r *Runner) Last(object client.ObjectKey) Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.history(object).last()
}

// Timeline is the history of the object, one Sample per change.
func (r *Runner) Timeline(object client.ObjectKey) []Sample {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.history(object).samples)
}
