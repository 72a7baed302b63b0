// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// fleetMemory is what one reconcile of a fleet hands to the next.
type fleetMemory struct {
	// writtenAt is when the status was last written.
	writtenAt time.Time
	// refused children, by object.
	refused map[string]refusedChild
	// goneSince is when the object of a child was first missed, by the child's name.
	goneSince map[string]time.Time
}

// refusedChild is an apply that the API server turned down. It is tried again after retryRefusedEvery, or for another
// spec.
type refusedChild struct {
	why        string
	at         time.Time
	generation int64
	live       types.UID
}

func (r *FleetReconciler) memory(key types.NamespacedName) *fleetMemory {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.memories[key] == nil {
		r.memories[key] = &fleetMemory{}
	}
	return r.memories[key]
}

func (r *FleetReconciler) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
}
