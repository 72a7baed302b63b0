// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// meshAt is FunctionMesh etl with the given replicas in its entries tag and resize.
func meshAt(tag, resize int64) *unstructured.Unstructured {
	mesh := fixture.Mesh()
	fixture.EntryAt(mesh, 0)["replicas"], fixture.EntryAt(mesh, 1)["replicas"] = tag, resize
	return mesh
}

// childAt is the child of an entry with the given replicas.
func childAt(entry string, replicas int64) *unstructured.Unstructured {
	child := fixture.MeshChild()
	child.SetName("etl-" + entry)
	fixture.Spec(child)["replicas"] = replicas
	return child
}

// toZero is a fixture.ComponentPolicy that scales to zero.
func toZero() *v1alpha1.AutoscalingPolicy {
	p := fixture.ComponentPolicy()
	p.Spec.MinReplicas = new(int32(0))
	return p
}

func TestAnEntryAtZeroIsRaisedUntilItsChildExists(t *testing.T) {
	for name, restart := range map[string]bool{"in one process": false, "after a change of the leader": true} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, meshAt(3, 0), childAt("tag", 3), toZero(), fixture.ConfigMap())
			env.reconcile()
			require.Equal(t, int64(1), env.replicasInMesh()["resize"])
			status, message := env.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, "Unknown/ChildMissing", status)
			require.Equal(t, "entry resize in spec.functions of FunctionMesh etl is at 1 until Function Mesh has "+
				"created Function etl-resize, which it cannot with 0", message)
			status, _ = env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "Unknown/ChildMissing", status)
			env.answer(0, 10_000)
			env.reconcile()
			env.managed.entries = writtenBy("pulsar-autoscaler", "", "functions")
			if restart {
				env.restart()
				env.firstDecision(0)
			}
			env.after(time.Second)
			env.reconcile()
			require.Equal(t, int64(1), env.replicasInMesh()["resize"], "the child does not exist yet")
			_, message = env.condition(v1alpha1.ConditionTargetFound)
			require.Contains(t, message, "Function Mesh has not created Function etl-resize of entry resize")

			require.NoError(t, env.client.Create(t.Context(), childAt("resize", 1)))
			env.after(time.Second)
			env.reconcile()
			require.Equal(t, int64(0), env.replicasInMesh()["resize"])
			env.after(testInterval)
			env.answer(0, 10_000)
			env.reconcile()
			require.Equal(t, int64(0), env.replicasInMesh()["resize"])
			require.Equal(t, int32(0), *env.policy().Status.DesiredReplicas, "1 was never decided")
			for _, event := range env.events() {
				require.NotContains(t, event, reasonReplicasChangedExternally)
			}
		})
	}
}

// TestAnEntryBelowItsLeastIsRaisedUntilItsChildExists: Function Mesh's webhook refuses to create less than minReplicas.
func TestAnEntryBelowItsLeastIsRaisedUntilItsChildExists(t *testing.T) {
	for name, replicas := range map[string]int64{"at zero": 0, "below": 1} {
		t.Run(name, func(t *testing.T) {
			mesh := meshAt(1, replicas)
			fixture.EntryAt(mesh, 1)["minReplicas"] = int64(2)
			env := newTestEnv(t, mesh, childAt("tag", 1), toZero(), fixture.ConfigMap())
			env.reconcile()
			require.Equal(t, int64(2), env.replicasInMesh()["resize"])
			_, message := env.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, fmt.Sprintf("entry resize in spec.functions of FunctionMesh etl is at 2 until Function Mesh has "+
				"created Function etl-resize, which it cannot with %d", replicas), message)

			env.answer(0, 10_000)
			env.reconcile()
			require.Equal(t, int64(2), env.replicasInMesh()["resize"], "the child does not exist yet")
			require.NoError(t, env.client.Create(t.Context(), childAt("resize", 2)))
			env.after(time.Second)
			env.reconcile()
			require.Equal(t, replicas, env.replicasInMesh()["resize"])
		})
	}
}

func TestAnEntryAtZeroWithWorkIsRaisedToWhatItNeeds(t *testing.T) {
	env := newTestEnv(t, meshAt(3, 0), childAt("tag", 3), toZero(), fixture.ConfigMap())
	env.firstDecision(700)
	require.Equal(t, int64(7), env.replicasInMesh()["resize"])
	require.Equal(t, int32(7), *env.policy().Status.DesiredReplicas)
}

// TestAWakeToOneIsNoCreation: one replica that messages need stays until the entry was idle for long enough.
func TestAWakeToOneIsNoCreation(t *testing.T) {
	for name, restart := range map[string]bool{"in one process": false, "after a change of the leader": true} {
		t.Run(name, func(t *testing.T) {
			env := newTestEnv(t, meshAt(3, 0), childAt("tag", 3), childAt("resize", 0), toZero(), fixture.ConfigMap())
			env.firstDecision(0)
			env.after(testInterval)
			env.answer(2, 10_002)
			env.reconcile()
			require.Equal(t, int64(1), env.replicasInMesh()["resize"])
			env.managed.entries = writtenBy("pulsar-autoscaler", "", "functions")
			if restart {
				env.restart()
				env.answer(2, 10_002)
				env.reconcile()
			}
			env.followMesh()
			env.after(soon)
			env.reconcile()
			for range 9 {
				env.after(testInterval)
				env.answer(0, 10_002)
				env.reconcile()
				require.Equal(t, int64(1), env.replicasInMesh()["resize"])
			}
		})
	}
}

func TestAChildAtZeroThatExistsIsLeftThere(t *testing.T) {
	env := newTestEnv(t, meshAt(3, 0), childAt("tag", 3), childAt("resize", 0), toZero(), fixture.ConfigMap())
	env.firstDecision(0)
	require.Equal(t, int64(0), env.replicasInMesh()["resize"])
	status, _ := env.condition(v1alpha1.ConditionReady)
	require.Equal(t, "True/ScaledToZero", status)
}

func TestAnEntryThatIsNotRaisedIsNamed(t *testing.T) {
	for name, change := range map[string]func(p *v1alpha1.AutoscalingPolicy){
		"in mode Recommend": func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.Mode, p.Spec.MinReplicas = v1alpha1.ModeRecommend, new(int32(0))
		},
		"in mode Paused": func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.Mode, p.Spec.MinReplicas = v1alpha1.ModePaused, new(int32(0))
		},
		"switched off by hand": func(*v1alpha1.AutoscalingPolicy) {},
	} {
		t.Run(name, func(t *testing.T) {
			p := fixture.ComponentPolicy()
			change(p)
			env := newTestEnv(t, meshAt(3, 0), childAt("tag", 3), p, fixture.ConfigMap())
			env.reconcile()
			env.answer(0, 10_000)
			env.reconcile()
			require.Equal(t, int64(0), env.replicasInMesh()["resize"])
			status, message := env.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, "False/ChildMissing", status)
			require.Equal(t, "Function Mesh stops at entry resize in spec.functions of FunctionMesh etl, for it cannot create "+
				"Function etl-resize with 0 replicas: set replicas of the entry to 1", message)
			require.Empty(t, env.reconcile(), "a second reconcile of the same objects writes nothing")

			require.NoError(t, env.client.Create(t.Context(), childAt("resize", 0)))
			env.reconcile()
			status, _ = env.condition(v1alpha1.ConditionTargetFound)
			require.NotContains(t, status, "ChildMissing")
		})
	}
}

func TestAnEntryThatStopsItsMeshIsNamedByThoseAfterIt(t *testing.T) {
	tests := map[string]struct {
		mesh     *unstructured.Unstructured
		children []*unstructured.Unstructured
		status   string
		message  string
	}{
		"a sibling that is not scaled": {
			meshAt(0, 5),
			[]*unstructured.Unstructured{childAt("resize", 3)},
			"False/FunctionMeshBlocked", "Function Mesh stops at entry tag in spec.functions of FunctionMesh etl, for it " +
				"cannot create Function etl-tag with 0 replicas: set replicas of the entry to 1",
		},
		"a sibling that is not created": {meshAt(0, 5), nil, "False/FunctionMeshBlocked", "stops at entry tag"},
		"an entry with replicas": {
			meshAt(1, 5), nil, "Unknown/FunctionMeshBlocked",
			"Function Mesh has not created Function etl-tag of entry tag in spec.functions of FunctionMesh etl yet",
		},
		"the own one": {
			meshAt(1, 5),
			[]*unstructured.Unstructured{childAt("tag", 1)},
			"Unknown/ChildMissing",
			"Function Mesh has not created Function etl-resize of entry resize",
		},
		"a sibling that equals its entry": {
			meshAt(0, 5), []*unstructured.Unstructured{childAt("resize", 5)}, "True/Found", "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := fixture.ComponentPolicy()
			p.Spec.MinReplicas = new(int32(5))
			env := newTestEnv(t, test.mesh, p, fixture.ConfigMap())
			for _, child := range test.children {
				require.NoError(t, env.client.Create(t.Context(), child))
			}
			env.firstDecision(0)
			status, message := env.condition(v1alpha1.ConditionTargetFound)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Equal(t, int32(5), *env.policy().Status.DesiredReplicas, "decisions go on")
		})
	}
}

func TestEntriesOfAnotherKindComeFirst(t *testing.T) {
	mesh, p := meshAt(1, 1), fixture.ComponentPolicy()
	sink, source := fixture.Entry("store"), fixture.Entry("load")
	source["replicas"] = int64(0)
	fixture.Spec(mesh)["sinks"], fixture.Spec(mesh)["sources"] = []any{sink}, []any{source}
	p.Spec.ScaleTargetRef.Component = v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadSink, Name: "store"}
	env := newTestEnv(t, mesh, childAt("tag", 1), childAt("resize", 1), p, fixture.ConfigMap())
	env.reconcile()
	_, message := env.condition(v1alpha1.ConditionTargetFound)
	require.Contains(t, message, "Function Mesh stops at entry load in spec.sources")
}

func TestAnEntryWithoutReplicasIsScaled(t *testing.T) {
	for name, test := range map[string]struct {
		minimum any
		want    int32
	}{
		"one, by default":                     {nil, 1},
		"its minReplicas, as Function Mesh's": {int64(2), 2},
	} {
		t.Run(name, func(t *testing.T) {
			mesh := meshAt(1, 1)
			delete(fixture.EntryAt(mesh, 1), "replicas")
			if test.minimum != nil {
				fixture.EntryAt(mesh, 1)["minReplicas"] = test.minimum
			}
			env := newTestEnv(t, mesh, childAt("tag", 1), childAt("resize", int64(test.want)), fixture.ComponentPolicy(),
				fixture.ConfigMap())
			env.reconcile()
			require.Equal(t, test.want, *env.policy().Status.SpecReplicas)
			env.answer(700, 10_000)
			env.reconcile()
			require.Equal(t, int64(7), env.replicasInMesh()["resize"])
			status, _ := env.condition(v1alpha1.ConditionReady)
			require.Equal(t, "True/Scaling", status)
		})
	}
}
