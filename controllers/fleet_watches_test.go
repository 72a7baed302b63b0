// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestEventsReachTheFleetsTheyMatterTo(t *testing.T) {
	ofSinks := testFleet("sinks")
	ofSinks.Spec.TargetSelector.Kind = cluster.KindSink
	w := newFleetWorld(t, labelled("resize"), testFleet("media"), testFleet("late"), ofSinks)
	w.pass("late")
	child := w.read(childOf("late", "resize"))
	tests := map[string]struct {
		policy *v1alpha1.AutoscalingPolicy
		want   []string
	}{
		"a fleet itself, and the others of its kind":        {testFleet("media"), []string{"late", "media"}},
		"one that is gone":                                  {testFleet("gone"), []string{"late", "media", "gone"}},
		"a policy that names an object of the kind":         {fixture.Policy(), []string{"late", "media"}},
		"a child, its own fleet alone":                      {child, []string{"late"}},
		"a policy that names an object of a kind that none": {&v1alpha1.AutoscalingPolicy{}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.ElementsMatch(t, test.want, queued(t, fleetsOfPolicies(w.client), client.Object(test.policy)))
		})
	}
	require.ElementsMatch(t, []string{"late", "media"}, queued(t, fleetsOfWorkloads(w.client), labelled("crop")))
	require.ElementsMatch(t, []string{"sinks"}, queued(t, fleetsOfWorkloads(w.client), fixture.Workload(cluster.KindSink)))
}

func TestAFleetGathersWhatHappensToItsChildren(t *testing.T) {
	w := newFleetWorld(t, labelled("resize"), testFleet("media"))
	w.pass("media")
	before := w.read(childOf("media", "resize"))
	tests := map[string]struct {
		change func(p *v1alpha1.AutoscalingPolicy)
		// atOnce and later are how many fleets are queued.
		atOnce, later int
	}{
		"at once when somebody edits it":   {func(p *v1alpha1.AutoscalingPolicy) { p.Generation++ }, 1, 1},
		"at once when its labels are gone": {func(p *v1alpha1.AutoscalingPolicy) { p.Labels = nil }, 1, 1},
		"at once when it is let go":        {func(p *v1alpha1.AutoscalingPolicy) { p.OwnerReferences = nil }, 1, 1},
		"a second later when its replicas change": {func(
			p *v1alpha1.AutoscalingPolicy,
		) {
			p.Status.DesiredReplicas = new(int32(7))
		}, 0, 1},
		"never when only its signals change": {func(
			p *v1alpha1.AutoscalingPolicy,
		) {
			p.Status.Signals = &v1alpha1.Signals{}
		}, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer queue.ShutDown()
				after := before.DeepCopy()
				test.change(after)
				fleetsOfPolicies(w.client).Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, queue)
				synctest.Wait()
				require.Equal(t, test.atOnce, queue.Len())
				time.Sleep(gatherChildrenFor)
				synctest.Wait()
				require.Equal(t, test.later, queue.Len())
			})
		})
	}
}

func TestSelectionsGoByLabelsAndOwners(t *testing.T) {
	changed := func(change func(f *unstructured.Unstructured)) bool {
		after := labelled("resize")
		change(after)
		return selectionChanged().Update(event.TypedUpdateEvent[*unstructured.Unstructured]{
			ObjectOld: labelled("resize"),
			ObjectNew: after,
		})
	}
	require.True(t, changed(func(f *unstructured.Unstructured) { f.SetLabels(nil) }))
	require.True(t, changed(func(f *unstructured.Unstructured) {
		f.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh",
			Name: "etl",
		}})
	}))
	require.False(t, changed(func(f *unstructured.Unstructured) { fixture.Spec(f)["replicas"] = int64(9) }))
}
