// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// errEntryGone means there is nothing to write: the next reconcile reports it in a condition.
var errEntryGone = errors.New("the entry does not exist any more")

// scaleEntry patches one number of a FunctionMesh, and those that the patch would reset otherwise. The lists have no
// keys, so neither a merge patch nor server-side apply can write one entry. A JSON patch can, by an index that it tests
// first.
func (a applier) scaleEntry(ctx context.Context, subject plan.Subject, replicas int32) error {
	ref := subject.Policy.Spec.ScaleTargetRef
	mesh, err := a.targets.Reader.Object(ctx, cluster.KindFunctionMesh, subject.Policy.Namespace, ref.Name)
	if err != nil {
		return err
	}
	if mesh == nil {
		return errEntryGone
	}
	entry, err := target.FindEntry(mesh, ref.Component)
	if err != nil {
		return fmt.Errorf("%w: %s", errEntryGone, err.Error())
	}
	if now := entry.Replicas(); now != nil && *now == replicas {
		return nil
	}
	kept, err := keepAutoscaled(ctx, a.targets.Reader, mesh, entry)
	if err != nil {
		return err
	}
	patch, err := jsonPatch(append(kept, writeReplicas(entry, replicas)...)...)
	if err != nil {
		return err
	}
	written := cluster.NewUnstructured(cluster.KindFunctionMesh) // the cached object is shared
	written.SetNamespace(mesh.Namespace)
	written.SetName(mesh.Name)
	if err := a.client.Patch(ctx, written, patch, client.FieldOwner(plan.FieldManager)); err != nil {
		return fmt.Errorf("writing replicas of spec.%s[%d] of FunctionMesh %s, which may have changed meanwhile: %w",
			entry.List, entry.Index, ref.Name, namingGrant(err, cluster.KindFunctionMesh))
	}
	return nil
}

// writeReplicas sets the entry's replicas if the name at its index still matches. Operation add replaces an existing
// number.
func writeReplicas(e target.MeshEntry, replicas int32) []operation {
	at := fmt.Sprintf("/spec/%s/%d/", e.List, e.Index)
	return []operation{
		{Op: "test", Path: at + "name", Value: e.Name()}, {Op: "add", Path: at + "replicas", Value: replicas},
	}
}

// keepAutoscaled writes the replicas of the components that Function Mesh's own autoscalers scale, except of one entry,
// into theirs: any change of the mesh would reset them.
func keepAutoscaled(ctx context.Context, reader *target.Reader, mesh *target.Cached,
	except target.MeshEntry,
) (kept []operation, err error) {
	err = reader.Autoscaled(ctx, mesh, func(entry target.MeshEntry, replicas int32) {
		if entry.List != except.List || entry.Index != except.Index {
			kept = append(kept, writeReplicas(entry, replicas)...)
		}
	})
	return kept, err
}
