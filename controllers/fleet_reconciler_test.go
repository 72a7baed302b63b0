// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// testFleet governs all Functions with the label team=media, with the spec of fixture.Policy.
func testFleet(name string) *v1alpha1.AutoscalingPolicy {
	p := fixture.Policy()
	p.Name, p.UID = name, types.UID("uid-"+name)
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
	p.Spec.TargetSelector = &v1alpha1.TargetSelector{
		Kind: cluster.KindFunction, LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "media"}},
	}
	return p
}

// labelled is a Function of that team.
func labelled(name string) *unstructured.Unstructured {
	f := fixture.Function()
	f.SetName(name)
	f.SetLabels(map[string]string{"team": "media"})
	return f
}

// fleetWorld is a testWorld with a reconciler of fleets.
type fleetWorld struct {
	*testWorld
	fleets *FleetReconciler
}

func newFleetWorld(t *testing.T, objects ...client.Object) *fleetWorld {
	t.Helper()
	w := &fleetWorld{testWorld: newTestWorld(t, objects...)}
	w.restartFleets()
	return w
}

func (w *fleetWorld) restartFleets() {
	w.t.Helper()
	w.restart()
	var err error
	w.fleets, err = NewFleetReconciler(FleetConfig{
		Client: w.client, Workloads: w.client, Installed: func(string) bool { return w.installed }, Recorder: w.recorder,
		Clock: w.clock, Registerer: w.registry,
	})
	require.NoError(w.t, err)
}

// pass over a fleet; it returns the writes, in order of their names, for children are written side by side.
func (w *fleetWorld) pass(name string) ([]string, reconcile.Result) {
	w.t.Helper()
	w.writes = nil
	result, err := w.fleets.Reconcile(w.t.Context(),
		reconcile.Request{NamespacedName: types.NamespacedName{Namespace: fixture.Namespace, Name: name}})
	require.NoError(w.t, err)
	slices.Sort(w.writes)
	return w.writes, result
}

func (w *fleetWorld) read(name string) *v1alpha1.AutoscalingPolicy {
	w.t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(w.t, w.client.Get(w.t.Context(), types.NamespacedName{Namespace: fixture.Namespace, Name: name}, &p))
	return &p
}

// children of a fleet: the names of their targets.
func (w *fleetWorld) children(name string) []string {
	w.t.Helper()
	fleet := w.read(name)
	var list v1alpha1.AutoscalingPolicyList
	require.NoError(w.t, w.client.List(w.t.Context(), &list))
	var names []string
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], fleet) {
			names = append(names, list.Items[i].Spec.ScaleTargetRef.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (w *fleetWorld) says(name, condition string) (string, string) {
	w.t.Helper()
	c := meta.FindStatusCondition(w.read(name).Status.Conditions, condition)
	require.NotNil(w.t, c, condition)
	return string(c.Status) + "/" + c.Reason, c.Message
}

// childOf is the name of the child for a Function.
func childOf(fleet, function string) string {
	return plan.ChildName(fleet, plan.FleetRef(testFleet(fleet), function))
}

func (w *fleetWorld) update(name string, change func(*v1alpha1.AutoscalingPolicy)) {
	w.t.Helper()
	p := w.read(name)
	change(p)
	p.Generation++
	require.NoError(w.t, w.client.Update(w.t.Context(), p))
}

func (w *fleetWorld) makeReady(name string, status metav1.ConditionStatus, reason string) {
	w.t.Helper()
	p := w.read(name)
	meta.SetStatusCondition(&p.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionReady, Status: status, Reason: reason, Message: "as it is"})
	require.NoError(w.t, w.client.Status().Update(w.t.Context(), p))
}

func TestAFleetKeepsAPolicyForEachObjectThatMatches(t *testing.T) {
	plain := fixture.Function()
	plain.SetName("plain")
	w := newFleetWorld(t, labelled("resize"), labelled("crop"), plain, testFleet("media"))
	writes, _ := w.pass("media")
	require.Equal(t, []string{"apply", "apply", "patch status"}, writes)
	require.Equal(t, []string{"crop", "resize"}, w.children("media"))

	child := w.read(childOf("media", "crop"))
	wanted := fixture.Policy().Spec
	wanted.ScaleTargetRef.Name = "crop"
	require.Equal(t, wanted, child.Spec)
	require.Equal(t, "media", child.Labels[plan.LabelPolicy])
	require.Nil(t, child.OwnerReferences[0].BlockOwnerDeletion, "which needs a right that the adapter does not have")
	writes, result := w.pass("media")
	require.Empty(t, writes, "nothing changed")
	require.Equal(t, fleetAgain, result.RequeueAfter)
	w.restartFleets()
	writes, _ = w.pass("media")
	require.Empty(t, writes, "nothing changed for another leader either")

	f := labelled("crop")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(f), f))
	f.SetLabels(nil)
	require.NoError(t, w.client.Update(t.Context(), f))
	writes, _ = w.pass("media")
	require.Contains(t, writes, "delete "+childOf("media", "crop"))
	require.Equal(t, []string{"resize"}, w.children("media"))
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(f), f))
	replicas, _, err := unstructured.NestedInt64(f.Object, "spec", "replicas")
	require.NoError(t, err)
	require.Equal(t, int64(3), replicas)
}

func TestChildrenFollowTheSpecOfTheFleet(t *testing.T) {
	fleet := testFleet("media")
	fleet.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "token"}
	w := newFleetWorld(t, labelled("resize"), fleet)
	w.pass("media")
	name := childOf("media", "resize")
	require.Equal(t, "token", w.read(name).Spec.Pulsar.AuthSecret)

	w.update("media", func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Mode, p.Spec.Pulsar = v1alpha1.ModeRecommend, nil })
	w.pass("media")
	require.Equal(t, v1alpha1.ModeRecommend, w.read(name).Spec.Mode)
	require.Nil(t, w.read(name).Spec.Pulsar, "what the fleet does not say any more is gone")

	w.update(name, func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 500 })
	w.pass("media")
	require.Equal(t, int32(20), w.read(name).Spec.MaxReplicas, "what a user changed is set right")

	w.update(name, func(p *v1alpha1.AutoscalingPolicy) { p.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "own"} })
	writes, _ := w.pass("media")
	require.NotContains(t, writes, "apply", "what the fleet does not say is the child's own")
	require.Equal(t, "own", w.read(name).Spec.Pulsar.AuthSecret)

	w.update("media", func(p *v1alpha1.AutoscalingPolicy) { p.Spec.TargetSelector.MatchLabels["team"] = "sound" })
	w.pass("media")
	require.Empty(t, w.children("media"))
	status, message := w.says("media", v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/NothingMatches", status)
	require.Contains(t, message,
		`no Function in namespace media matches "team=sound": label one so, or correct spec.targetSelector`)
}

func TestWhoGovernsAnObject(t *testing.T) {
	w := newFleetWorld(t, labelled("resize"), labelled("crop"), testFleet("media"))
	w.pass("media")
	require.Equal(t, []string{"crop", "resize"}, w.children("media"))

	named := fixture.Policy() // younger, and only recommends
	named.CreationTimestamp = metav1.NewTime(named.CreationTimestamp.Add(time.Hour))
	named.Spec.Mode = v1alpha1.ModeRecommend
	require.NoError(t, w.client.Create(t.Context(), named))
	w.after(time.Minute)
	writes, _ := w.pass("media")
	require.Contains(t, writes, "delete "+childOf("media", "resize"))
	require.Equal(t, "1 of 2 Functions", w.read("media").Status.Target)
	_, message := w.says("media", v1alpha1.ConditionTargetFound)
	require.Equal(t, "2 Functions match, 1 of them left alone: resize (AutoscalingPolicy resize names it)", message)

	older := testFleet("early")
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	require.NoError(t, w.client.Create(t.Context(), older))
	w.pass("early")
	w.pass("media")
	require.Equal(t, []string{"crop"}, w.children("early"))
	require.Empty(t, w.children("media"))
	w.after(time.Minute)
	w.pass("media")
	status, _ := w.says("media", v1alpha1.ConditionReady)
	require.Equal(t, "True/CoveredByOtherPolicies", status)
}

func TestAChildNeverStandsInTheWayOfAUsersPolicy(t *testing.T) {
	w := newFleetWorld(t, labelled("resize"), fixture.ConfigMap(), testFleet("media"))
	w.pass("media")
	named := fixture.Policy()
	named.CreationTimestamp = metav1.NewTime(time.Now())
	require.NoError(t, w.client.Create(t.Context(), named))
	world := plan.Observed{Policy: w.read("resize")}
	require.NoError(t, w.reconciler.observer.observePrecedence(t.Context(), &world))
	require.Empty(t, world.OlderPolicy)
	world = plan.Observed{Policy: w.read(childOf("media", "resize"))}
	require.NoError(t, w.reconciler.observer.observePrecedence(t.Context(), &world))
	require.Equal(t, "resize", world.OlderPolicy, "until it is removed")

	last := otherAutoscaler("compute.functionmesh.io/v1alpha1", "Function", "resize")
	last.OwnerReferences = w.read(childOf("media", "resize")).OwnerReferences
	last.OwnerReferences[0].Name = childOf("media", "resize")
	require.NoError(t, w.client.Create(t.Context(), last))
	for range 2 {
		w.reconcile()
		_, message := w.condition(v1alpha1.ConditionAutoscalerApplied)
		require.Contains(t, message, "AutoscalingPolicy "+childOf("media", "resize")+" gives way to this policy")
		require.Nil(t, w.autoscaler(), "two at once would stop both")
		require.NoError(t, client.IgnoreNotFound(w.client.Delete(t.Context(), &v1alpha1.AutoscalingPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: childOf("media", "resize")},
		})))
	}
}

func TestWhatAFleetCannotDoIsACondition(t *testing.T) {
	inMesh := labelled("resize")
	yes := true
	inMesh.SetOwnerReferences([]metav1.OwnerReference{{
		APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "FunctionMesh", Name: "photos", UID: "mesh", Controller: &yes,
	}})
	taken := fixture.Policy()
	taken.Name, taken.UID, taken.Spec.ScaleTargetRef.Name = childOf("media", "resize"), "uid-taken", "another"
	tests := map[string]struct {
		objects []client.Object
		change  func(w *fleetWorld, p *v1alpha1.AutoscalingPolicy)
		status  string
		message string
	}{
		"a selector that cannot be read": {
			change: func(_ *fleetWorld, p *v1alpha1.AutoscalingPolicy) {
				p.Spec.TargetSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is"}}
			},
			status: "False/SelectorInvalid", message: `correct spec.targetSelector: "Is" is not a valid label selector operator`,
		},
		"a kind that is not installed": {
			change: func(w *fleetWorld, _ *v1alpha1.AutoscalingPolicy) { w.installed = false },
			status: "False/TargetKindUnsupported", message: "install Function Mesh",
		},
		"children of a mesh alone": {
			objects: []client.Object{inMesh}, status: "False/OwnedByFunctionMesh",
			message: "resize (it belongs to FunctionMesh photos: name its component in a policy of its own)",
		},
		"a name that is somebody else's": {
			objects: []client.Object{labelled("resize"), taken}, status: "False/PolicyNameTaken",
			message: "AutoscalingPolicy " + taken.Name + " for resize",
		},
		"an API server that refuses": {
			objects: []client.Object{labelled("resize")},
			change: func(w *fleetWorld, _ *v1alpha1.AutoscalingPolicy) {
				w.applyFails = apierrors.NewForbidden(v1alpha1.GroupResource(), "x", errors.New("quota"))
			},
			status: "False/ApplyRefused", message: "resize: autoscalingpolicies.pulsar-autoscaler.io \"x\" is forbidden: quota",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fleet := testFleet("media")
			w := newFleetWorld(t, test.objects...)
			if test.change != nil {
				test.change(w, fleet)
			}
			require.NoError(t, w.client.Create(t.Context(), fleet))
			w.pass("media")
			status, message := w.says("media", v1alpha1.ConditionReady)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Equal(t, int64(1), w.read("media").Status.ObservedGeneration)
			require.Len(t, w.events(), 1)
			writes, _ := w.pass("media")
			require.Empty(t, writes, "neither the same status nor what was refused again")
			if len(test.objects) == 2 {
				require.Equal(t, "another", w.read(taken.Name).Spec.ScaleTargetRef.Name)
				require.Empty(t, w.read(taken.Name).OwnerReferences)
			}
		})
	}
}

func TestNothingIsRemovedWhileItIsNotKnownWhatMatches(t *testing.T) {
	w := newFleetWorld(t, labelled("resize"), testFleet("media"))
	w.pass("media")
	w.installed = false
	writes, _ := w.pass("media")
	require.Equal(t, []string{"patch status"}, writes)
	require.Equal(t, []string{"resize"}, w.children("media"))
}

func TestThePoliciesOfAFleetOfTheSameNameBeforeLeaveFirst(t *testing.T) {
	w := newFleetWorld(t, labelled("resize"), testFleet("media"))
	w.pass("media")
	require.NoError(t, w.client.Delete(t.Context(), w.read("media")))
	again := testFleet("media")
	again.UID = "uid-again"
	require.NoError(t, w.client.Create(t.Context(), again))
	w.pass("media")
	require.Empty(t, w.children("media"))
	status, _ := w.says("media", v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status)
	require.NoError(t, w.client.Delete(t.Context(), w.read(childOf("media", "resize")))) // by garbage collection
	w.pass("media")
	require.Equal(t, []string{"resize"}, w.children("media"))
}

func TestTheStatusOfALargeFleetIsBounded(t *testing.T) {
	const targets = 150
	objects := []client.Object{testFleet("media")}
	for i := range targets {
		objects = append(objects, labelled(fmt.Sprintf("f-%03d", i)))
	}
	w := newFleetWorld(t, objects...)
	writes, _ := w.pass("media")
	require.Len(t, writes, targets+1)
	for i := range targets {
		w.makeReady(childOf("media", fmt.Sprintf("f-%03d", i)), metav1.ConditionTrue, "Scaling")
	}
	writes, _ = w.pass("media")
	require.Equal(t, []string{"patch status"}, writes, "Ready changed")
	status, message := w.says("media", v1alpha1.ConditionReady)
	require.Equal(t, "True/Scaling", status)
	require.Equal(t, "the policies of all 150 Functions are Ready", message)
	require.Len(t, w.read("media").Status.Fleet.Targets, 100)

	patches := 0
	for range 60 { // a minute in which they change their replicas one after another
		w.after(time.Second)
		p := w.read(childOf("media", "f-000"))
		p.Status.DesiredReplicas = new(int32(w.now.Unix() % 19))
		require.NoError(t, w.client.Status().Update(t.Context(), p))
		writes, _ := w.pass("media")
		patches += len(writes)
	}
	require.LessOrEqual(t, patches, 6)
	require.GreaterOrEqual(t, patches, 5)

	w.makeReady(childOf("media", "f-133"), metav1.ConditionFalse, "ConflictingAutoscaler")
	writes, _ = w.pass("media")
	require.Equal(t, []string{"patch status"}, writes, "Ready changed")
	status, message = w.says("media", v1alpha1.ConditionReady)
	require.Equal(t, "False/ConflictingAutoscaler", status)
	require.Equal(t, "1 of 150 Functions are not ready: f-133: as it is", message)
	require.Equal(t, "f-133", w.read("media").Status.Fleet.Targets[0].Name)
}

func TestChildrenAreNotOverwrittenByARaceForTheirName(t *testing.T) {
	w := newFleetWorld(t, labelled("resize"), testFleet("media"))
	w.applyFails = &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonConflict, Message: `conflict with "kubectl"`,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}},
	}}
	w.pass("media")
	_, message := w.says("media", v1alpha1.ConditionReady)
	require.Contains(t, message, "another field manager owns AutoscalingPolicy ")
	require.True(t, strings.HasSuffix(message, `: conflict with "kubectl"`), message)
}

func TestTheKindThatAFleetSelectsMayChange(t *testing.T) {
	sink := fixture.Workload(cluster.KindSink)
	sink.SetName("resize")
	sink.SetLabels(map[string]string{"team": "media"})
	w := newFleetWorld(t, labelled("resize"), sink, testFleet("media"))
	w.pass("media")
	before := childOf("media", "resize")
	require.Equal(t, cluster.KindFunction, w.read(before).Spec.ScaleTargetRef.Kind)
	w.update("media", func(p *v1alpha1.AutoscalingPolicy) { p.Spec.TargetSelector.Kind = cluster.KindSink })
	w.pass("media")
	require.Equal(t, []string{"resize"}, w.children("media"))
	after := plan.ChildName("media", plan.FleetRef(w.read("media"), "resize"))
	require.NotEqual(t, before, after)
	require.Equal(t, cluster.KindSink, w.read(after).Spec.ScaleTargetRef.Kind)
	writes, _ := w.pass("media")
	require.Empty(t, writes)
	require.Equal(t, "1 of 1 Sinks", w.read("media").Status.Target)
}

// workersSet is a StatefulSet as the function worker makes it.
func workersSet() *unstructured.Unstructured {
	set := cluster.NewUnstructured(cluster.KindStatefulSet)
	set.SetNamespace(fixture.Namespace)
	set.SetName("pf-public-default-resize")
	set.SetLabels(map[string]string{"team": "media"})
	set.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"command": []any{
			"sh", "-c",
			"java org.apache.pulsar.functions.instance.JavaInstanceMain --function_details '{}'",
		}},
	}}}}
	return set
}

func TestAFleetAwaitsWhatTheFunctionWorkerMakesAnew(t *testing.T) {
	fleet := testFleet("media")
	fleet.Spec.TargetSelector.Kind = cluster.KindStatefulSet
	w := newFleetWorld(t, workersSet(), fleet)
	w.pass("media")
	name := plan.ChildName("media", plan.FleetRef(fleet, workersSet().GetName()))
	w.update(name, func(p *v1alpha1.AutoscalingPolicy) { p.UID = "uid-child" })

	t.Log("the function is updated")
	require.NoError(t, w.client.Delete(t.Context(), workersSet()))
	w.pass("media")
	w.after(time.Minute)
	w.pass("media")
	require.Equal(t, types.UID("uid-child"), w.read(name).UID, "and what it learned is kept")
	require.NoError(t, w.client.Create(t.Context(), workersSet()))
	w.pass("media")
	require.Equal(t, types.UID("uid-child"), w.read(name).UID)

	t.Log("it is deleted for good")
	w.after(time.Hour)
	require.NoError(t, w.client.Delete(t.Context(), workersSet()))
	w.pass("media")
	require.Len(t, w.children("media"), 1)
	w.after(absentFor)
	w.pass("media")
	require.Empty(t, w.children("media"))

	t.Log("it loses the label")
	require.NoError(t, w.client.Create(t.Context(), workersSet()))
	w.pass("media")
	require.Len(t, w.children("media"), 1)
	set := workersSet()
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(set), set))
	set.SetLabels(nil)
	require.NoError(t, w.client.Update(t.Context(), set))
	w.pass("media")
	require.Empty(t, w.children("media"))
}
