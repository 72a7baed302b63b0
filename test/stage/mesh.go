// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// Mesh is a FunctionMesh.
type Mesh struct {
	Name string
	// Functions are those of its entries, in order: entry e becomes Function <mesh>-<e>.
	Functions []*Function

	stage *Stage
}

// AddMesh creates a FunctionMesh with an entry for each Function and everything that they need, and returns when all
// their replicas consume. Entries of a stage have different names, and each has a topic.
func (s *Stage) AddMesh(ctx context.Context, name string, entries ...FunctionConfig) (*Mesh, error) {
	m := &Mesh{Name: name, stage: s}
	var objects []*unstructured.Unstructured
	for _, config := range entries {
		if config.Sink || config.WithoutTopic {
			return nil, fmt.Errorf("stage.AddMesh: entry %s has Sink %t, WithoutTopic %t: entries are Functions with a topic",
				config.Name, config.Sink, config.WithoutTopic)
		}
		f, object, err := s.furnish(ctx, config)
		if err != nil {
			return nil, err
		}
		f.Name = name + "-" + config.Name
		m.Functions = append(m.Functions, f)
		objects = append(objects, object)
	}
	if err := s.Client.Create(ctx, mesh.Mesh(Namespace, name, objects...)); err != nil {
		return nil, fmt.Errorf("creating FunctionMesh %s: %w", name, err)
	}
	for i, f := range m.Functions {
		if err := f.consumes(ctx, int(cmp.Or(entries[i].Replicas, 1))); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// Object returns an empty object of the mesh, to read into, to patch or to delete.
func (m *Mesh) Object() *unstructured.Unstructured {
	return object(mesh.GroupVersion().WithKind(mesh.KindMesh), m.Name)
}

// Remove deletes the mesh with everything that it created, and returns when no replica is left.
func (m *Mesh) Remove(ctx context.Context) error {
	if err := m.stage.Client.Delete(ctx, m.Object()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting FunctionMesh %s: %w", m.Name, err)
	}
	// The mesh recreates children until it is deleted.
	err := cluster.WaitFor(ctx, "the FunctionMesh "+m.Name+" to go", pollEvery,
		func(ctx context.Context) (bool, string, error) {
			for _, f := range m.Functions {
				if err := m.stage.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: f.Name},
					f.Object()); client.IgnoreNotFound(err) != nil || err == nil {
					return false, f.Name + " is there", client.IgnoreNotFound(err)
				}
			}
			return true, "", nil
		})
	for _, f := range m.Functions {
		err = errors.Join(err, f.Remove(ctx))
	}
	return err
}
