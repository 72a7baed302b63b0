// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policyset

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestASetKeepsAPolicyForEachObjectThatMatches(t *testing.T) {
	plain := fixture.Function()
	plain.SetName("plain")
	c := newTestCluster(t, labelled("resize"), labelled("crop"), plain, fixture.PolicySet("media"))
	writes, _ := c.reconcile("media")
	require.Equal(t, []string{"apply", "apply", "patch status"}, writes)
	require.Equal(t, []string{"Function/crop", "Function/resize"}, c.governed("media"))
	require.Equal(t, []string{
		"Normal PoliciesCreated 2: " + policyOf("media", "crop") + ", " + policyOf("media", "resize"),
	}, c.recorded())

	p, wanted := c.policy(policyOf("media", "crop")), fixture.Policy().Spec
	wanted.ScaleTargetRef.Name = "crop"
	require.Equal(t, wanted, p.Spec)
	require.Equal(t, "media", p.Labels[plan.LabelPolicySet])
	writes, result := c.reconcile("media")
	require.Empty(t, writes, "nothing changed")
	require.Equal(t, resyncEvery, result.RequeueAfter)
	c.restart()
	writes, _ = c.reconcile("media")
	require.Empty(t, writes, "nothing changed for another leader either")

	c.setReady(policyOf("media", "crop"), metav1.ConditionTrue, "Scaling", "")
	c.setReady(policyOf("media", "resize"), metav1.ConditionTrue, "Scaling", "")
	c.reconcile("media")
	require.Equal(t, []string{"Normal AllReady 2 of 2 policies are Ready"}, c.recorded())

	f := labelled("crop")
	c.relabel(f, nil)
	writes, _ = c.reconcile("media")
	require.Contains(t, writes, "delete "+policyOf("media", "crop"))
	require.Equal(t, []string{"Function/resize"}, c.governed("media"))
	require.Contains(t, c.recorded(), "Normal PoliciesDeleted 1: "+policyOf("media", "crop"))
	require.NoError(t, c.client.Get(t.Context(), client.ObjectKeyFromObject(f), f))
	replicas, _, err := unstructured.NestedInt64(f.Object, "spec", "replicas")
	require.NoError(t, err)
	require.Equal(t, int64(3), replicas)
}

func TestASetSelectsObjectsOfAllKinds(t *testing.T) {
	sink, batch, source := fixture.Workload("Sink"), fixture.Workload("Source"), fixture.Workload("Source")
	batch.SetName("crawl")
	fixture.Spec(batch)["batchSourceConfig"] = map[string]any{}
	source.SetName("ingest")
	component := fixture.MeshChild()
	for _, object := range []*unstructured.Unstructured{sink, batch, source, component} {
		object.SetLabels(media())
	}
	mesh := labelledMesh()
	fixture.Spec(mesh)["sources"] = []any{map[string]any{"name": "pull"}}
	c := newTestCluster(t, labelled("resize"), sink, batch, source, mesh, component, workersSet(), fixture.PolicySet("all"))
	c.reconcile("all")
	require.Equal(t, []string{
		"Function/resize", "FunctionMesh/etl:Function/resize", "FunctionMesh/etl:Function/tag", "Sink/resize",
		"Source/crawl", "StatefulSet/pf-public-default-resize",
	}, c.governed("all"))
	status := c.set("all").Status
	require.Equal(t, []int32{8, 6, 0}, []int32{*status.Matched, *status.Governed, *status.Ready})
	require.Equal(t, []v1alpha1.PolicySetObject{{
		Kind: "FunctionMesh", Name: "etl", Component: v1alpha1.MeshComponent{Kind: "Source", Name: "pull"},
		Reason:  "NothingToScale",
		Message: "a Source without batchSourceConfig consumes nothing from Pulsar: scale it on its CPU",
	}, {
		Kind: "Source", Name: "ingest", Reason: "NothingToScale",
		Message: "a Source without batchSourceConfig consumes nothing from Pulsar: scale it on its CPU",
	}}, status.NotReady[6:])
}

func TestAFunctionMeshThatMatches(t *testing.T) {
	component := fixture.MeshChild()
	component.SetLabels(media())
	c := newTestCluster(t, labelledMesh(), component, fixture.PolicySet("media"))
	c.reconcile("media")
	require.Equal(t, []string{"FunctionMesh/etl:Function/resize", "FunctionMesh/etl:Function/tag"}, c.governed("media"))

	t.Log("an entry goes and another comes")
	mesh := fixture.Mesh()
	require.NoError(t, c.client.Get(t.Context(), client.ObjectKeyFromObject(mesh), mesh))
	fixture.Spec(mesh)["functions"] = []any{fixture.Entry("tag"), fixture.Entry("crop")}
	require.NoError(t, c.client.Update(t.Context(), mesh))
	c.reconcile("media")
	require.Equal(t, []string{"FunctionMesh/etl:Function/crop", "FunctionMesh/etl:Function/tag"}, c.governed("media"))

	t.Log("a user's policy names a component")
	named := fixture.ComponentPolicy()
	named.Spec.ScaleTargetRef.Component.Name = "tag"
	require.NoError(t, c.client.Create(t.Context(), named))
	c.reconcile("media")
	require.Equal(t, []string{"FunctionMesh/etl:Function/crop"}, c.governed("media"))

	t.Log("it loses its label, and its Function has one")
	c.relabel(mesh, nil)
	c.reconcile("media")
	require.Empty(t, c.governed("media"))
	status, message := c.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "False/OwnedByFunctionMesh", status)
	require.Equal(t, "Function/etl-resize: FunctionMesh etl sets its replicas: give the labels to the mesh, whose "+
		"components then get policies", message)
}

func TestPoliciesFollowTheTemplate(t *testing.T) {
	set := fixture.PolicySet("media")
	set.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"team": "media"}
	set.Spec.Template.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "token"}
	c := newTestCluster(t, labelled("resize"), set)
	c.reconcile("media")
	name := policyOf("media", "resize")
	require.Equal(t, "token", c.policy(name).Spec.Pulsar.AuthSecret)
	require.Equal(t, "media", c.policy(name).Labels["team"])

	c.editSet("media", func(set *v1alpha1.AutoscalingPolicySet) {
		set.Spec.Template.Metadata.Labels = nil
		set.Spec.Template.Spec.Mode, set.Spec.Template.Spec.Pulsar = v1alpha1.ModeRecommend, nil
	})
	c.reconcile("media")
	require.Equal(t, v1alpha1.ModeRecommend, c.policy(name).Spec.Mode)
	require.Nil(t, c.policy(name).Spec.Pulsar, "what left the template is gone")
	require.NotContains(t, c.policy(name).Labels, "team")

	c.editPolicy(name, func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 500 })
	c.reconcile("media")
	require.Equal(t, int32(20), c.policy(name).Spec.MaxReplicas, "an edit is reverted")

	c.editPolicy(name, func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "own"}
	})
	writes, _ := c.reconcile("media")
	require.NotContains(t, writes, "apply", "what the template does not say is the policy's own")
	require.Equal(t, "own", c.policy(name).Spec.Pulsar.AuthSecret)

	c.editSet("media", func(set *v1alpha1.AutoscalingPolicySet) { set.Spec.Selector.MatchLabels["team"] = "sound" })
	c.reconcile("media")
	require.Empty(t, c.governed("media"))
	status, _ := c.condition("media", v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/NothingMatches", status)
}

func TestPrecedence(t *testing.T) {
	c := newTestCluster(t, labelled("resize"), labelled("crop"), fixture.PolicySet("media"))
	c.reconcile("media")
	require.Equal(t, []string{"Function/crop", "Function/resize"}, c.governed("media"))

	named := fixture.Policy() // younger, and only recommends
	named.CreationTimestamp = metav1.NewTime(named.CreationTimestamp.Add(time.Hour))
	named.Spec.Mode = v1alpha1.ModeRecommend
	require.NoError(t, c.client.Create(t.Context(), named))
	c.now = c.now.Add(time.Minute)
	writes, _ := c.reconcile("media")
	require.Contains(t, writes, "delete "+policyOf("media", "resize"))
	status := c.set("media").Status
	require.Equal(t, []int32{2, 1, 0}, []int32{*status.Matched, *status.Governed, *status.Ready})
	require.Equal(t, v1alpha1.PolicySetObject{
		Kind: "Function", Name: "resize", Policy: "resize", Reason: "NamedByPolicy",
		Message: "AutoscalingPolicy resize names it",
	}, status.NotReady[1])

	older := fixture.PolicySet("early")
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	require.NoError(t, c.client.Create(t.Context(), older))
	c.reconcile("early")
	c.reconcile("media")
	require.Equal(t, []string{"Function/crop"}, c.governed("early"))
	require.Empty(t, c.governed("media"))
	c.now = c.now.Add(time.Minute)
	c.reconcile("media")
	ready, message := c.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "True/NotGoverned", ready)
	require.Contains(t, message, "Function/crop: the older AutoscalingPolicySet early selects it")
}

func TestWhatASetCannotDoIsACondition(t *testing.T) {
	inMesh := fixture.MeshChild()
	inMesh.SetLabels(media())
	taken := fixture.Policy()
	taken.Name, taken.UID, taken.Spec.ScaleTargetRef.Name = policyOf("media", "resize"), "uid-taken", "another"
	conflict := &apierrors.StatusError{ErrStatus: metav1.Status{
		Reason: metav1.StatusReasonConflict, Message: `conflict with "kubectl"`,
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict}}},
	}}
	tests := map[string]struct {
		objects    []client.Object
		change     func(*v1alpha1.AutoscalingPolicySet)
		applyFails error
		status     string
		message    string
	}{
		"a selector that cannot be read": {
			change: func(set *v1alpha1.AutoscalingPolicySet) {
				set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is"}}
			},
			status: "False/SelectorInvalid", message: `correct spec.selector: "Is" is not a valid label selector operator`,
		},
		"Functions of a mesh alone": {
			objects: []client.Object{inMesh}, status: "False/OwnedByFunctionMesh",
			message: "Function/etl-resize: FunctionMesh etl sets its replicas",
		},
		"a name that another policy has": {
			objects: []client.Object{labelled("resize"), taken}, status: "False/PolicyNameTaken",
			message: "Function/resize: AutoscalingPolicy " + taken.Name,
		},
		"an API server that refuses": {
			objects:    []client.Object{labelled("resize")},
			applyFails: apierrors.NewForbidden(v1alpha1.GroupResource(), "x", errors.New("quota")),
			status:     "False/ApplyRefused",
			message:    "Function/resize: autoscalingpolicies.pulsar-autoscaler.io \"x\" is forbidden: quota",
		},
		"a policy that came meanwhile": {
			objects: []client.Object{labelled("resize")}, applyFails: conflict, status: "False/ApplyRefused",
			message: "another field manager owns AutoscalingPolicy " + policyOf("media", "resize") +
				`: conflict with "kubectl"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := fixture.PolicySet("media")
			if test.change != nil {
				test.change(set)
			}
			c := newTestCluster(t, append(test.objects, set)...)
			c.applyFails = test.applyFails
			c.reconcile("media")
			status, message := c.condition("media", v1alpha1.ConditionReady)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Equal(t, int64(1), c.set("media").Status.ObservedGeneration)
			require.Len(t, c.recorded(), 1)
			writes, _ := c.reconcile("media")
			require.Empty(t, writes, "neither the same status nor what was refused again")
			if len(test.objects) == 2 {
				require.Equal(t, "another", c.policy(taken.Name).Spec.ScaleTargetRef.Name)
				require.Empty(t, c.policy(taken.Name).OwnerReferences)
			}
			if test.applyFails != nil {
				c.now = c.now.Add(retryRefusedEvery)
				writes, _ = c.reconcile("media")
				require.Equal(t, []string{"apply"}, writes, "it is tried again")
			}
		})
	}
}

func TestAFailedWriteIsTriedAgain(t *testing.T) {
	c := newTestCluster(t, labelled("resize"), fixture.PolicySet("media"))
	c.applyFails = errors.New("timeout")
	_, err := c.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key("media")})
	require.ErrorContains(t, err, "timeout")
	status, _ := c.condition("media", v1alpha1.ConditionPoliciesApplied)
	require.Equal(t, "Unknown/ApplyFailed", status)
	c.applyFails = nil
	c.reconcile("media")
	require.Equal(t, []string{"Function/resize"}, c.governed("media"))
}

func TestPoliciesOfAKindThatCannotBeReadStay(t *testing.T) {
	c := newTestCluster(t, labelled("resize"), fixture.PolicySet("media"))
	c.reconcile("media")
	c.missing = []string{cluster.KindFunction}
	c.reconcile("media")
	require.Equal(t, []string{"Function/resize"}, c.governed("media"))
}

func TestPoliciesOfASetOfThatNameBeforeLeaveFirst(t *testing.T) {
	c := newTestCluster(t, labelled("resize"), fixture.PolicySet("media"))
	c.reconcile("media")
	require.NoError(t, c.client.Delete(t.Context(), c.set("media")))
	c.reconcile("media") // gone
	again := fixture.PolicySet("media")
	again.UID = "uid-again"
	require.NoError(t, c.client.Create(t.Context(), again))
	c.reconcile("media")
	require.Empty(t, c.governed("media"))
	status, _ := c.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status)
	require.NoError(t, c.client.Delete(t.Context(), c.policy(policyOf("media", "resize")))) // by garbage collection
	c.reconcile("media")
	require.Equal(t, []string{"Function/resize"}, c.governed("media"))
}

func TestTheStatusOfALargeSetIsBounded(t *testing.T) {
	const objects = 150
	all := []client.Object{fixture.PolicySet("media")}
	for i := range objects {
		all = append(all, labelled(fmt.Sprintf("f-%03d", i)))
	}
	c := newTestCluster(t, all...)
	writes, _ := c.reconcile("media")
	require.Len(t, writes, objects+1)
	require.Len(t, c.set("media").Status.NotReady, 100)
	events := c.recorded()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Normal PoliciesCreated 150: ")
	require.Contains(t, events[0], " and 140 more")
	for i := range objects {
		c.setReady(policyOf("media", fmt.Sprintf("f-%03d", i)), metav1.ConditionTrue, "Scaling", "")
	}
	writes, _ = c.reconcile("media")
	require.Equal(t, []string{"patch status"}, writes, "Ready changed")
	status, message := c.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "True/AllReady", status)
	require.Equal(t, "150 of 150 policies are Ready", message)
	require.Empty(t, c.set("media").Status.NotReady)

	c.setReady(policyOf("media", "f-133"), metav1.ConditionFalse, "ConflictingAutoscaler", "delete it")
	writes, _ = c.reconcile("media")
	require.Equal(t, []string{"patch status"}, writes, "Ready changed")
	status, message = c.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "False/ConflictingAutoscaler", status)
	require.Equal(t, "1 of 150 are not ready: Function/f-133: delete it", message)

	patches := 0
	for i := range 60 { // a minute in which policies become ready and not ready one after another
		c.now = c.now.Add(time.Second)
		c.setReady(policyOf("media", "f-000"), metav1.ConditionFalse, "Stale", fmt.Sprint("for ", i))
		writes, _ := c.reconcile("media")
		patches += len(writes)
	}
	require.LessOrEqual(t, patches, 6)
	require.GreaterOrEqual(t, patches, 5)
}

// workersSet is a StatefulSet as the function worker makes it.
func workersSet() *unstructured.Unstructured {
	set := cluster.NewUnstructured(cluster.KindStatefulSet)
	set.SetNamespace(fixture.Namespace)
	set.SetName("pf-public-default-resize")
	set.SetLabels(media())
	set.Object["spec"] = map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"command": []any{
			"sh", "-c",
			"java org.apache.pulsar.functions.instance.JavaInstanceMain --function_details '{}'",
		}},
	}}}}
	return set
}

func TestAPolicyWaitsForAStatefulSetThatTheWorkerRecreates(t *testing.T) {
	c := newTestCluster(t, workersSet(), fixture.PolicySet("media"))
	c.reconcile("media")
	name := plan.SetPolicyName("media",
		v1alpha1.ScaleTargetRef{Kind: cluster.KindStatefulSet, Name: workersSet().GetName()})
	c.editPolicy(name, func(p *v1alpha1.AutoscalingPolicy) { p.UID = "uid-policy" })

	t.Log("the function is updated")
	require.NoError(t, c.client.Delete(t.Context(), workersSet()))
	c.reconcile("media")
	c.now = c.now.Add(time.Minute)
	c.reconcile("media")
	require.Equal(t, types.UID("uid-policy"), c.policy(name).UID, "and what it learned is kept")
	require.NoError(t, c.client.Create(t.Context(), workersSet()))
	c.reconcile("media")
	require.Equal(t, types.UID("uid-policy"), c.policy(name).UID)

	t.Log("it is deleted for good")
	c.now = c.now.Add(time.Hour)
	require.NoError(t, c.client.Delete(t.Context(), workersSet()))
	c.reconcile("media")
	require.Len(t, c.governed("media"), 1)
	c.now = c.now.Add(target.RecreatedWithin)
	c.reconcile("media")
	require.Empty(t, c.governed("media"))

	t.Log("it loses the label")
	set := workersSet()
	require.NoError(t, c.client.Create(t.Context(), set))
	c.reconcile("media")
	require.Len(t, c.governed("media"), 1)
	c.relabel(set, nil)
	c.reconcile("media")
	require.Empty(t, c.governed("media"))
}

func TestOfStatefulSetsThoseOfTheFunctionWorkerAreSelected(t *testing.T) {
	recorded := fixture.RecordedStatefulSets(t)
	resize, job := recorded["pf-public-default-resize"], recorded["pf-public-default-job"]
	other := recorded["pf-public-default-drain"]
	job.SetName("nightly-2207e5fd") // as with a jobName
	fixture.SetCommand(t, other, []any{"postgres", "-D", "/data"})
	objects := []client.Object{fixture.PolicySet("all")}
	for _, object := range []*unstructured.Unstructured{resize, job, other} {
		object.SetNamespace(fixture.Namespace)
		object.SetLabels(media())
		object.SetResourceVersion("")
		_, err := target.Transform(object)
		require.NoError(t, err)
		objects = append(objects, object)
	}
	c := newTestCluster(t, objects...)
	c.reconcile("all")
	require.Equal(t, []string{"StatefulSet/nightly-2207e5fd", "StatefulSet/pf-public-default-resize"}, c.governed("all"))
}
