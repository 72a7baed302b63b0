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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

func TestSetKeepsAPolicyForEachMatchingObject(t *testing.T) {
	plain := fixture.Function()
	plain.SetName("plain")
	env := newTestEnv(t, labelled("resize"), labelled("crop"), plain, fixture.PolicySet("media"))
	writes, _ := env.reconcile("media")
	require.Equal(t, []string{"apply", "apply", "patch status"}, writes)
	require.Equal(t, []string{"Function/crop", "Function/resize"}, env.governed("media"))
	require.Equal(t, []string{
		"Normal PoliciesCreated 2: " + policyOf("media", "crop") + ", " + policyOf("media", "resize"),
	}, env.recorded())

	p, wanted := env.policy(policyOf("media", "crop")), fixture.Policy().Spec
	wanted.ScaleTargetRef.Name = "crop"
	require.Equal(t, wanted, p.Spec)
	require.Equal(t, "media", p.Labels[set.Label])
	writes, result := env.reconcile("media")
	require.Empty(t, writes, "nothing changed")
	require.Equal(t, resyncEvery, result.RequeueAfter)
	env.restart()
	writes, _ = env.reconcile("media")
	require.Empty(t, writes, "nothing changed for a new leader")

	env.setReady(policyOf("media", "crop"), metav1.ConditionTrue, "Scaling", "")
	env.setReady(policyOf("media", "resize"), metav1.ConditionTrue, "Scaling", "")
	env.reconcile("media")
	require.Equal(t, []string{"Normal AllReady 2 of 2 policies are Ready"}, env.recorded())

	f := labelled("crop")
	env.relabel(f, nil)
	writes, _ = env.reconcile("media")
	require.Contains(t, writes, "delete "+policyOf("media", "crop"))
	require.Equal(t, []string{"Function/resize"}, env.governed("media"))
	require.Contains(t, env.recorded(), "Normal PoliciesDeleted 1: "+policyOf("media", "crop"))
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(f), f))
	replicas, _, err := unstructured.NestedInt64(f.Object, "spec", "replicas")
	require.NoError(t, err)
	require.Equal(t, int64(3), replicas)
}

func TestSetSelectsAllKinds(t *testing.T) {
	sink, batch, source := fixture.Workload("Sink"), fixture.Workload("Source"), fixture.Workload("Source")
	batch.SetName("crawl")
	fixture.Spec(batch)["batchSourceConfig"] = map[string]any{}
	source.SetName("ingest")
	component, recorded := fixture.MeshChild(), fixture.RecordedStatefulSets(t)
	silent, tasks := recorded["pf-public-default-silent"], recorded["pf-public-default-tasks"]
	for _, object := range []*unstructured.Unstructured{sink, batch, source, component, silent, tasks} {
		object.SetNamespace(fixture.Namespace)
		object.SetLabels(media())
	}
	mesh := labelledMesh()
	fixture.Spec(mesh)["sources"] = []any{map[string]any{"name": "pull"}}
	env := newTestEnv(t, labelled("resize"), sink, batch, source, mesh, component, workersSet(), silent, tasks,
		fixture.PolicySet("all"))
	env.reconcile("all")
	require.Equal(t, []string{
		"Function/resize", "FunctionMesh/etl:Function/resize", "FunctionMesh/etl:Function/tag", "Sink/resize",
		"Source/crawl", "StatefulSet/pf-public-default-resize", "StatefulSet/pf-public-default-tasks",
	}, env.governed("all"))
	status := env.set("all").Status
	require.Equal(t, []int32{10, 7, 0}, []int32{*status.Matched, *status.Governed, *status.Ready})
	require.Equal(t, []v1alpha1.PolicySetObject{{
		Kind: "FunctionMesh", Name: "etl", Component: v1alpha1.MeshComponent{Kind: "Source", Name: "pull"},
		Reason:  "NothingToScale",
		Message: "a Source without batchSourceConfig consumes nothing from Pulsar: scale it on its CPU",
	}, {
		Kind: "Source", Name: "ingest", Reason: "NothingToScale",
		Message: "a Source without batchSourceConfig consumes nothing from Pulsar: scale it on its CPU",
	}, {
		Kind: "StatefulSet", Name: "pf-public-default-silent", Reason: "NothingToScale",
		Message: "a Source without batchSourceConfig consumes nothing from Pulsar: scale it on its CPU",
	}}, status.NotReady[7:])
}

func TestSetSelectsComponentsOfAMesh(t *testing.T) {
	component := fixture.MeshChild()
	component.SetLabels(media())
	env := newTestEnv(t, labelledMesh(), component, fixture.PolicySet("media"))
	env.reconcile("media")
	require.Equal(t, []string{"FunctionMesh/etl:Function/resize", "FunctionMesh/etl:Function/tag"}, env.governed("media"))

	t.Log("an entry goes and another comes")
	mesh := fixture.Mesh()
	require.NoError(t, env.client.Get(t.Context(), client.ObjectKeyFromObject(mesh), mesh))
	fixture.Spec(mesh)["functions"] = []any{fixture.Entry("tag"), fixture.Entry("crop")}
	require.NoError(t, env.client.Update(t.Context(), mesh))
	env.reconcile("media")
	require.Equal(t, []string{"FunctionMesh/etl:Function/crop", "FunctionMesh/etl:Function/tag"}, env.governed("media"))

	t.Log("it loses its label, and its Function has one")
	env.relabel(mesh, nil)
	env.reconcile("media")
	require.Empty(t, env.governed("media"))
}

func TestPoliciesFollowTheTemplate(t *testing.T) {
	set := fixture.PolicySet("media")
	set.Spec.Template.Metadata.Labels = map[string]v1alpha1.LabelValue{"team": "media"}
	set.Spec.Template.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "token"}
	env := newTestEnv(t, labelled("resize"), set)
	env.reconcile("media")
	name := policyOf("media", "resize")
	require.Equal(t, "token", env.policy(name).Spec.Pulsar.AuthSecret)
	require.Equal(t, "media", env.policy(name).Labels["team"])

	env.editSet("media", func(set *v1alpha1.AutoscalingPolicySet) {
		set.Spec.Template.Metadata.Labels = nil
		set.Spec.Template.Spec.Mode, set.Spec.Template.Spec.Pulsar = v1alpha1.ModeRecommend, nil
	})
	env.reconcile("media")
	require.Equal(t, v1alpha1.ModeRecommend, env.policy(name).Spec.Mode)
	require.Nil(t, env.policy(name).Spec.Pulsar, "the template dropped it")
	require.NotContains(t, env.policy(name).Labels, "team")

	env.editPolicy(name, func(p *v1alpha1.AutoscalingPolicy) { p.Spec.MaxReplicas = 500 })
	env.reconcile("media")
	require.Equal(t, int32(20), env.policy(name).Spec.MaxReplicas, "an edit is reverted")

	env.editPolicy(name, func(p *v1alpha1.AutoscalingPolicy) {
		p.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "own"}
	})
	writes, _ := env.reconcile("media")
	require.NotContains(t, writes, "apply", "the policy owns fields that the template omits")
	require.Equal(t, "own", env.policy(name).Spec.Pulsar.AuthSecret)

	env.editSet("media", func(set *v1alpha1.AutoscalingPolicySet) { set.Spec.Selector.MatchLabels["team"] = "sound" })
	env.reconcile("media")
	require.Empty(t, env.governed("media"))
	status, _ := env.condition("media", v1alpha1.ConditionTargetFound)
	require.Equal(t, "False/NothingMatches", status)
}

func TestASetIsNotReadyBeforeItsPoliciesJudgeANewTemplate(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.reconcile("media")
	name := policyOf("media", "resize")
	env.setReady(name, metav1.ConditionTrue, "Scaling", "")
	env.reconcile("media")
	ready, _ := env.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "True/AllReady", ready)

	env.applied = 2
	env.editSet("media", func(set *v1alpha1.AutoscalingPolicySet) { set.Spec.Template.Spec.MaxReplicas = 7 })
	writes, _ := env.reconcile("media")
	require.Equal(t, []string{"apply", "patch status"}, writes)
	ready, _ = env.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", ready)
}

func TestPrecedence(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), labelled("crop"), fixture.PolicySet("media"))
	env.reconcile("media")
	require.Equal(t, []string{"Function/crop", "Function/resize"}, env.governed("media"))

	named := fixture.Policy() // younger, and only recommends
	named.CreationTimestamp = metav1.NewTime(named.CreationTimestamp.Add(time.Hour))
	named.Spec.Mode = v1alpha1.ModeRecommend
	require.NoError(t, env.client.Create(t.Context(), named))
	env.now = env.now.Add(time.Minute)
	writes, _ := env.reconcile("media")
	require.Contains(t, writes, "delete "+policyOf("media", "resize"))
	status := env.set("media").Status
	require.Equal(t, []int32{2, 1, 0}, []int32{*status.Matched, *status.Governed, *status.Ready})
	require.Equal(t, v1alpha1.PolicySetObject{
		Kind: "Function", Name: "resize", Policy: "resize", Reason: "NamedByPolicy",
		Message: "AutoscalingPolicy resize names it",
	}, status.NotReady[1])
}

// TestNoRecreatedPolicyIsDeleted: the cache may still have ours, which a user has replaced.
func TestNoRecreatedPolicyIsDeleted(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.reconcile("media")
	ours := env.policy(policyOf("media", "resize"))
	ours.UID = "before"
	_, err := env.reconciler.delete(t.Context(), ours)
	require.True(t, apierrors.IsConflict(err), err)
	require.NotNil(t, env.policy(ours.Name))
}

func TestProblemsOfASetAreConditions(t *testing.T) {
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
		"an invalid selector": {
			change: func(set *v1alpha1.AutoscalingPolicySet) {
				set.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is"}}
			},
			status: "False/SelectorInvalid", message: `correct spec.selector: "Is" is not a valid label selector operator`,
		},
		"a name of another policy": {
			objects: []client.Object{labelled("resize"), taken}, status: "False/PolicyNameTaken",
			message: "Function/resize: AutoscalingPolicy " + taken.Name,
		},
		"a refusal of the API server": {
			objects:    []client.Object{labelled("resize")},
			applyFails: apierrors.NewForbidden(v1alpha1.GroupResource(), "x", errors.New("quota")),
			status:     "False/ApplyRefused",
			message:    "Function/resize: autoscalingpolicies.pulsar-autoscaler.io \"x\" is forbidden: quota",
		},
		"a policy that a user created meanwhile": {
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
			env := newTestEnv(t, append(test.objects, set)...)
			env.applyFails = test.applyFails
			env.reconcile("media")
			status, message := env.condition("media", v1alpha1.ConditionReady)
			require.Equal(t, test.status, status)
			require.Contains(t, message, test.message)
			require.Equal(t, int64(1), env.set("media").Status.ObservedGeneration)
			require.Len(t, env.recorded(), 1)
			writes, _ := env.reconcile("media")
			require.Empty(t, writes, "neither the same status nor the refused policy again")
			if len(test.objects) == 2 {
				require.Equal(t, "another", env.policy(taken.Name).Spec.ScaleTargetRef.Name)
				require.Empty(t, env.policy(taken.Name).OwnerReferences)
			}
			if test.applyFails != nil {
				env.now = env.now.Add(retryRefusedEvery)
				writes, _ = env.reconcile("media")
				require.Equal(t, []string{"apply", "patch status"}, writes, "retried, and the set is stalled by then")
				stalled, _ := env.condition("media", v1alpha1.ConditionStalled)
				require.Equal(t, "True/ApplyRefused", stalled)
			}
		})
	}
}

func TestFailedWriteIsRetried(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.applyFails = errors.New("timeout")
	_, err := env.reconciler.Reconcile(t.Context(), reconcile.Request{NamespacedName: key("media")})
	require.ErrorContains(t, err, "timeout")
	status, _ := env.condition("media", v1alpha1.ConditionPoliciesApplied)
	require.Equal(t, "Unknown/ApplyFailed", status)
	env.applyFails = nil
	env.reconcile("media")
	require.Equal(t, []string{"Function/resize"}, env.governed("media"))
}

func TestPoliciesOfAnUnreadableKindStay(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.reconcile("media")
	env.missing = []string{cluster.KindFunction}
	env.reconcile("media")
	require.Equal(t, []string{"Function/resize"}, env.governed("media"))
}

func TestPoliciesOfADeletedSetOfTheSameName(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.reconcile("media")
	require.NoError(t, env.client.Delete(t.Context(), env.set("media")))
	env.reconcile("media") // gone
	again := fixture.PolicySet("media")
	again.UID = "uid-again"
	require.NoError(t, env.client.Create(t.Context(), again))
	env.reconcile("media")
	require.Empty(t, env.governed("media"))
	status, _ := env.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "Unknown/Pending", status)
	require.NoError(t, env.client.Delete(t.Context(), env.policy(policyOf("media", "resize")))) // by garbage collection
	env.reconcile("media")
	require.Equal(t, []string{"Function/resize"}, env.governed("media"))
}

func TestRefusalsOfADeletedSetEndWithIt(t *testing.T) {
	env := newTestEnv(t, labelled("resize"), fixture.PolicySet("media"))
	env.applyFails = apierrors.NewForbidden(v1alpha1.GroupResource(), "x", errors.New("quota"))
	env.reconcile("media")
	env.applyFails = nil
	require.NoError(t, env.client.Delete(t.Context(), env.set("media")))
	again := fixture.PolicySet("media")
	again.UID = "uid-again"
	require.NoError(t, env.client.Create(t.Context(), again))
	env.reconcile("media") // both events at once
	require.Equal(t, []string{"Function/resize"}, env.governed("media"))
}

func TestStatusOfALargeSetIsBounded(t *testing.T) {
	const objects = 150
	all := []client.Object{fixture.PolicySet("media")}
	for i := range objects {
		all = append(all, labelled(fmt.Sprintf("f-%03d", i)))
	}
	env := newTestEnv(t, all...)
	writes, _ := env.reconcile("media")
	require.Len(t, writes, objects+1)
	require.Len(t, env.set("media").Status.NotReady, 100)
	events := env.recorded()
	require.Len(t, events, 1)
	require.Contains(t, events[0], "Normal PoliciesCreated 150: ")
	require.Contains(t, events[0], " and 140 more")
	for i := range objects {
		env.setReady(policyOf("media", fmt.Sprintf("f-%03d", i)), metav1.ConditionTrue, "Scaling", "")
	}
	writes, _ = env.reconcile("media")
	require.Equal(t, []string{"patch status"}, writes, "Ready changed")
	status, message := env.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "True/AllReady", status)
	require.Equal(t, "150 of 150 policies are Ready", message)
	require.Empty(t, env.set("media").Status.NotReady)

	env.setReady(policyOf("media", "f-133"), metav1.ConditionFalse, "ConflictingAutoscaler", "delete it")
	writes, _ = env.reconcile("media")
	require.Equal(t, []string{"patch status"}, writes, "Ready changed")
	status, message = env.condition("media", v1alpha1.ConditionReady)
	require.Equal(t, "False/ConflictingAutoscaler", status)
	require.Equal(t, "1 of 150 are not ready: Function/f-133: delete it", message)

	patches := 0
	for i := range 60 { // a minute in which the readiness of policies alternates
		env.now = env.now.Add(time.Second)
		env.setReady(policyOf("media", "f-000"), metav1.ConditionFalse, "Stale", fmt.Sprint("for ", i))
		writes, _ := env.reconcile("media")
		patches += len(writes)
	}
	require.LessOrEqual(t, patches, 6)
	require.GreaterOrEqual(t, patches, 5)
}

// workersSet is a StatefulSet as the function worker creates it.
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

func TestPolicyStaysWhileTheWorkerRecreatesItsStatefulSet(t *testing.T) {
	env := newTestEnv(t, workersSet(), fixture.PolicySet("media"))
	env.reconcile("media")
	name := set.PolicyName("media",
		v1alpha1.ScaleTargetRef{Kind: cluster.KindStatefulSet, Name: workersSet().GetName()})
	env.editPolicy(name, func(p *v1alpha1.AutoscalingPolicy) { p.UID = "uid-policy" })

	t.Log("the function is updated")
	require.NoError(t, env.client.Delete(t.Context(), workersSet()))
	env.reconcile("media")
	env.now = env.now.Add(time.Minute)
	env.reconcile("media")
	require.Equal(t, types.UID("uid-policy"), env.policy(name).UID, "with its learned capacity")
	require.NoError(t, env.client.Create(t.Context(), workersSet()))
	env.reconcile("media")
	require.Equal(t, types.UID("uid-policy"), env.policy(name).UID)

	t.Log("it is deleted for good")
	env.now = env.now.Add(time.Hour)
	require.NoError(t, env.client.Delete(t.Context(), workersSet()))
	env.reconcile("media")
	require.Len(t, env.governed("media"), 1)
	env.now = env.now.Add(target.RecreatedWithin)
	env.reconcile("media")
	require.Empty(t, env.governed("media"))

	t.Log("it loses the label")
	set := workersSet()
	require.NoError(t, env.client.Create(t.Context(), set))
	env.reconcile("media")
	require.Len(t, env.governed("media"), 1)
	env.relabel(set, nil)
	env.reconcile("media")
	require.Empty(t, env.governed("media"))
}

func TestSetSelectsStatefulSetsOfTheWorker(t *testing.T) {
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
		objects = append(objects, object)
	}
	env := newTestEnv(t, objects...)
	env.reconcile("all")
	require.Equal(t, []string{"StatefulSet/nightly-2207e5fd", "StatefulSet/pf-public-default-resize"}, env.governed("all"))
}

func TestAnOlderSetGovernsFirst(t *testing.T) {
	older := fixture.PolicySet("early")
	older.CreationTimestamp = metav1.NewTime(older.CreationTimestamp.Add(-time.Hour))
	env := newTestEnv(t, labelled("crop"), fixture.PolicySet("media"), older)
	env.reconcile("media")
	require.Empty(t, env.governed("media"))
}
