// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// awaited are the children that lack their StatefulSet for less than absentFor. The function worker recreates it at
// each update of a function, and deleting the child would lose what was learned and held. A StatefulSet that exists
// and does not match is not awaited. A restarted process waits again.
func (r *FleetReconciler) awaited(ctx context.Context, observed plan.FleetWorld, memory *fleetMemory) (map[string]bool,
	error,
) {
	if observed.Violation != nil || observed.Policy.Spec.TargetSelector.Kind != cluster.KindStatefulSet {
		return nil, nil //nolint:nilnil // none is an answer
	}
	matched := map[string]bool{}
	for _, object := range observed.Matched {
		matched[object.Name] = true
	}
	now, goneSince, awaited := r.config.Clock(), map[string]time.Time{}, map[string]bool{}
	for _, child := range observed.Children {
		ref := child.Spec.ScaleTargetRef
		if ref.Kind != cluster.KindStatefulSet || matched[ref.Name] {
			continue
		}
		err := r.config.Workloads.Get(ctx, client.ObjectKey{Namespace: child.Namespace, Name: ref.Name},
			cluster.NewUnstructured(cluster.KindStatefulSet), client.UnsafeDisableDeepCopy)
		switch {
		case err == nil:
			continue
		case !apierrors.IsNotFound(err):
			return nil, fmt.Errorf("reading StatefulSet %s: %w", ref.Name, err)
		}
		since, known := memory.goneSince[child.Name]
		if !known {
			since = now
		}
		goneSince[child.Name], awaited[child.Name] = since, now.Sub(since) < absentFor
	}
	memory.goneSince = goneSince
	return awaited, nil
}
