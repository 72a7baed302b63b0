// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// addMesh adds a FunctionMesh to the stage and deletes it after the test.
func addMesh(t *testing.T, name string, entries ...stage.FunctionConfig) *stage.Mesh {
	t.Helper()
	onStage(t)
	m, err := scene.AddMesh(t.Context(), name, entries...)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Remove(context.WithoutCancel(t.Context())))
	})
	return m
}

// componentPolicy is newPolicy for a Function of a mesh, through the mesh.
func componentPolicy(m *stage.Mesh, f *stage.Function, entry string) *v1alpha1.AutoscalingPolicy {
	p := newPolicy(f.Name)
	p.Spec.ScaleTargetRef.Kind, p.Spec.ScaleTargetRef.Name = mesh.KindMesh, m.Name
	p.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: entry}
	return p
}

// touched is a mesh that changes repeatedly, so that Function Mesh writes over its children.
type touched struct {
	// mu guards seen.
	mu   sync.Mutex
	seen []int
}

// touch changes the mesh until the test ends, and watches the replicas of its first entry.
func touch(t *testing.T, m *stage.Mesh) *touched {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(m.Object().GroupVersionKind())
	events, err := scene.Client.Watch(ctx, list, client.InNamespace(stage.Namespace),
		client.MatchingFields{"metadata.name": m.Name})
	require.NoError(t, err)
	watched := &touched{}
	var group errgroup.Group
	group.Go(func() error {
		for event := range events.ResultChan() {
			if object, is := event.Object.(*unstructured.Unstructured); is && object.GetKind() == mesh.KindMesh {
				watched.see(int(entriesOf(object)[0]))
			}
		}
		return nil
	})
	group.Go(func() error {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":"%d"}}}`, n))
			switch err := scene.Client.Patch(ctx, m.Object(), patch); {
			case ctx.Err() != nil:
				return nil
			case err != nil:
				return err
			}
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		events.Stop()
		require.NoError(t, group.Wait())
	})
	return watched
}

func (w *touched) see(replicas int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.seen); n == 0 || w.seen[n-1] != replicas {
		w.seen = append(w.seen, replicas)
	}
}

// numbers are the replicas of the first entry, each change once.
func (w *touched) numbers() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.seen)
}

// turns counts how often a number changed its direction: up and down again is one.
func turns(numbers []int) int {
	count, direction := 0, 0
	for i := 1; i < len(numbers); i++ {
		now := 1
		if numbers[i] < numbers[i-1] {
			now = -1
		}
		if direction != 0 && now != direction {
			count++
		}
		direction = now
	}
	return count
}

// TestScalingAComponentOfAMeshWhileTheMeshIsWrittenOverIt changes what the policy decides by its bounds, which no load
// and no slow machine can delay.
func TestScalingAComponentOfAMeshWhileTheMeshIsWrittenOverIt(t *testing.T) {
	t.Parallel()
	const service, replicas = 25 * time.Millisecond, 4
	m := addMesh(t, "etl", stage.FunctionConfig{Name: "etl-busy", ServiceTime: service},
		stage.FunctionConfig{Name: "etl-calm", ServiceTime: service})
	busy, other := m.Functions[0], m.Functions[1]
	written := touch(t, m)
	p := componentPolicy(m, busy, "etl-busy")
	p.Spec.MinReplicas = new(int32(replicas))
	addPolicy(t, p)
	busy.AwaitReplicas(t, replicas, replicas)
	busy.AwaitConditions(t, "Ready=True/Scaling")
	busy.AwaitPolicy(t, "the controller itself to scale", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Actuator != nil && p.Status.Actuator.Type == v1alpha1.ActuatorDirect
	})
	hpa, err := busy.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa, "an entry of a mesh has no scale subresource")
	awaitPasses(t, m, 20)
	patchPolicy(t, p, `{"spec":{"minReplicas":1}}`)
	busy.AwaitReplicas(t, 1, 1)
	busy.AwaitConditions(t, "Ready=True/Scaling")
	awaitPasses(t, m, 20)

	busy.Await(t, "all changes of the entry to be seen", func(context.Context) (bool, string, error) {
		entry := written.numbers()
		return entry[len(entry)-1] == 1 && slices.Contains(entry, replicas), fmt.Sprint(entry), nil
	})
	entry, child := written.numbers(), scene.Mesh.Desired(stage.Namespace, busy.Name, time.Time{})
	t.Logf("replicas %v of the entry, %v of the child", entry, child)
	require.Contains(t, child, replicas)
	require.Equal(t, child, commonOf(child, entry), "the child was what its entry said and nothing else: %v", entry)
	require.Equal(t, []int{1}, scene.Mesh.Desired(stage.Namespace, other.Name, time.Time{}))
}

// awaitPasses waits until Function Mesh has written over the children that many times more.
func awaitPasses(t *testing.T, m *stage.Mesh, more int) {
	t.Helper()
	before := scene.Mesh.MeshPasses(stage.Namespace, m.Name)
	m.Functions[0].Await(t, fmt.Sprint(more, " passes of the mesh"), func(context.Context) (bool, string, error) {
		passes := scene.Mesh.MeshPasses(stage.Namespace, m.Name) - before
		return passes >= more, fmt.Sprint(passes), nil
	})
}

// commonOf are the first numbers that are in all in the same order: Function Mesh may skip some.
func commonOf(numbers, all []int) (common []int) {
	for _, number := range numbers {
		at := slices.Index(all, number)
		if at < 0 {
			return common
		}
		common, all = append(common, number), all[at:]
	}
	return common
}

func TestPolicyThatNamesAChildOfAMeshIsRefusedAndWritesNothing(t *testing.T) {
	t.Parallel()
	const entry = "wrongly-named"
	m := addMesh(t, "etl-direct", stage.FunctionConfig{Name: entry, ServiceTime: 25 * time.Millisecond})
	f := m.Functions[0]
	addPolicy(t, newPolicy(f.Name))
	publish(t, f, load.Constant(150))
	said := f.AwaitConditions(t, "Ready=False/OwnedByFunctionMesh")
	require.Contains(t, said,
		"replace this policy with one with scaleTargetRef {apiVersion: compute.functionmesh.io/v1alpha1, kind: FunctionMesh, "+
			"name: etl-direct, component: {kind: Function, name: wrongly-named}}")

	// For comparison: the mesh repeatedly resets a plain HorizontalPodAutoscaler's write on the child.
	plain := plainHPA(f.Name, 10)
	require.NoError(t, scene.Client.Create(t.Context(), plain))
	f.Await(t, "the child to be scaled and set back twice", func(context.Context) (bool, string, error) {
		desired := scene.Mesh.Desired(stage.Namespace, f.Name, time.Time{})
		return turns(desired) >= 3, fmt.Sprint(desired), nil
	})
	require.NoError(t, scene.Client.Delete(t.Context(), plain))
	requireEntries(t, m, 1)
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa, "the policy writes nothing")
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.Nil(t, p.Status.DesiredReplicas)
}
