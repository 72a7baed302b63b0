// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// setMaxReplicas changes maxReplicas of the target, or of its entry in a FunctionMesh, from one value to another; nil
// for absent. It does nothing if the value has changed since or the target is gone. Replicas stay: in a mesh those that
// its components have are written.
func (s suspender) setMaxReplicas(ctx context.Context, subject plan.Subject, from, to *int32) error {
	p := subject.Policy
	ref := subject.Target.Ref
	if subject.Target.Scaling == plan.ByMesh {
		ref = p.Spec.ScaleTargetRef
	} else if !v1alpha1.IsWorkload(ref.Kind) {
		return nil // no maxReplicas
	}
	// For the API server a JSON patch with a failed test is an invalid request.
	outdated := func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }
	return retry.OnError(retry.DefaultRetry, outdated, func() error {
		live := cluster.NewUnstructured(ref.Kind)
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, live); err != nil {
			return ignoreNotFound(err)
		}
		patch, err := s.maxReplicasPatch(ctx, live, p.Spec.ScaleTargetRef.Component, from, to)
		if err != nil || patch == nil {
			return err
		}
		if err := s.client.Patch(ctx, live, patch, client.FieldOwner(plan.FieldManager)); err != nil {
			return fmt.Errorf("writing maxReplicas of %s %s: %w", ref.Kind, ref.Name, namingGrant(err, ref.Kind))
		}
		return nil
	})
}

// operation is an operation of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func jsonPatch(operations ...operation) (client.Patch, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return client.RawPatch(types.JSONPatchType, text), nil
}

// maxReplicasPatch is nil if nothing changes. The patch fails if the object changes meanwhile: lists of a FunctionMesh
// are atomic and have no keys, so an entry is known by its index only.
func (s suspender) maxReplicasPatch(ctx context.Context, live *unstructured.Unstructured,
	component v1alpha1.MeshComponent, from, to *int32,
) (client.Patch, error) {
	path, entryOperations := "/spec", []operation(nil)
	fields, _, _ := unstructured.NestedMap(live.Object, "spec")
	if component.Name != "" {
		mesh := target.Decode(live)
		entry, err := target.FindEntry(mesh, component)
		if err != nil {
			return nil, nil //nolint:nilnil,nilerr // nothing to change
		}
		fields, path = entry.FieldsIn(live), fmt.Sprintf("/spec/%s/%d", entry.List, entry.Index)
		if entryOperations, err = keepAutoscaled(ctx, s.reader, mesh, target.MeshEntry{}); err != nil {
			return nil, err
		}
		entryOperations = append(entryOperations, operation{"test", path + "/name", component.Name})
	}
	is, found, err := unstructured.NestedInt64(fields, "maxReplicas")
	if err != nil {
		return nil, fmt.Errorf("reading maxReplicas: %w", err)
	}
	if found != (from != nil) || found && is != int64(*from) {
		return nil, nil //nolint:nilnil // another client changed it
	}
	operations := append([]operation{{"test", "/metadata/resourceVersion", live.GetResourceVersion()}},
		entryOperations...)
	if to == nil {
		operations = append(operations, operation{Op: "remove", Path: path + "/maxReplicas"})
	} else {
		operations = append(operations, operation{"add", path + "/maxReplicas", *to})
	}
	return jsonPatch(operations...)
}
