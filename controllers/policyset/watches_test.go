// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestEventsEnqueueSets(t *testing.T) {
	elsewhere := fixture.PolicySet("elsewhere")
	elsewhere.Namespace = "other"
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"), fixture.PolicySet("late"), elsewhere)
	env.reconcile("late")
	both := []string{"late", "media"}
	made := env.policy(policyOf("late", "resize"))
	require.ElementsMatch(t, both, fixture.Enqueued(t, enqueueForPolicies(env.client), client.Object(fixture.Policy())))
	require.Equal(t, []string{"late"}, fixture.Enqueued(t, enqueueForPolicies(env.client), client.Object(made)))
	ofSets := enqueueSets[client.Object](env.client)
	require.ElementsMatch(t, both, fixture.Enqueued(t, ofSets, client.Object(fixture.PolicySet("media"))))
	require.ElementsMatch(t, append(both, "gone"), fixture.Enqueued(t, ofSets, client.Object(fixture.PolicySet("gone"))))
	ofObjects := enqueueSets[*unstructured.Unstructured](env.client)
	require.ElementsMatch(t, both, fixture.Enqueued(t, ofObjects, fixture.Workload(cluster.KindSink)))
}

func TestPolicyEventsEnqueueTheirSet(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.reconcile("media")
	before := env.policy(policyOf("media", "resize"))
	tests := map[string]struct {
		change func(p *v1alpha1.AutoscalingPolicy)
		// atOnce and later are how many sets are enqueued.
		atOnce, later int
	}{
		"at once when a user edits it":         {func(p *v1alpha1.AutoscalingPolicy) { p.Generation++ }, 1, 1},
		"at once when its labels are gone":     {func(p *v1alpha1.AutoscalingPolicy) { p.Labels = nil }, 1, 1},
		"at once when a user takes it over":    {func(p *v1alpha1.AutoscalingPolicy) { p.OwnerReferences = nil }, 1, 1},
		"a second later when it becomes ready": {func(p *v1alpha1.AutoscalingPolicy) { becomeReady(p) }, 0, 1},
		"a second later when it judged its new spec": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.ObservedGeneration++
		}, 0, 1},
		"never when only its signals change": {func(p *v1alpha1.AutoscalingPolicy) {
			p.Status.Signals = &v1alpha1.Signals{}
		}, 0, 0},
		"never when only its decisions change": {func(p *v1alpha1.AutoscalingPolicy) { p.Status.DesiredReplicas = new(int32(7)) }, 0, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer q.ShutDown()
				after := before.DeepCopy()
				test.change(after)
				enqueueForPolicies(env.client).Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
				synctest.Wait()
				require.Equal(t, test.atOnce, q.Len())
				time.Sleep(statusDelay)
				synctest.Wait()
				require.Equal(t, test.later, q.Len())
			})
		})
	}
}

func becomeReady(p *v1alpha1.AutoscalingPolicy) {
	p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue}}
}

func TestSelectionChanged(t *testing.T) {
	recorded := fixture.RecordedStatefulSets(t)["pf-public-default-resize"]
	tests := map[string]struct {
		object *unstructured.Unstructured
		change func(*unstructured.Unstructured)
		want   bool
	}{
		"labels":   {labelled("resize"), func(f *unstructured.Unstructured) { f.SetLabels(nil) }, true},
		"replicas": {labelled("resize"), func(f *unstructured.Unstructured) { fixture.Spec(f)["replicas"] = int64(9) }, false},
		"an owner": {labelled("resize"), func(f *unstructured.Unstructured) {
			fixture.SetOwner(f, "compute.functionmesh.io/v1alpha1", "FunctionMesh", "etl")
		}, true},
		"an entry of a mesh": {labelledMesh(), func(mesh *unstructured.Unstructured) {
			fixture.Spec(mesh)["functions"] = []any{fixture.Entry("tag")}
		}, true},
		"the replicas of an entry": {labelledMesh(), func(mesh *unstructured.Unstructured) {
			fixture.EntryAt(mesh, 0)["replicas"] = int64(9)
		}, false},
		"a StatefulSet that runs another command": {recorded, func(set *unstructured.Unstructured) {
			fixture.SetCommand(t, set, []any{"sleep"})
		}, true},
		"nothing": {recorded, func(*unstructured.Unstructured) {}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := test.object.DeepCopy()
			test.change(after)
			require.Equal(t, test.want, selectionChanged().Update(event.TypedUpdateEvent[*target.Cached]{
				ObjectOld: target.Decode(test.object), ObjectNew: target.Decode(after),
			}))
		})
	}
}
