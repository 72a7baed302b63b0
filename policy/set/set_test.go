// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package set_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

const meshAPI = "compute.functionmesh.io/v1alpha1"

// policySet selects objects with label team=media.
func policySet(name string) *v1alpha1.AutoscalingPolicySet {
	ours := &v1alpha1.AutoscalingPolicySet{}
	ours.Name, ours.Namespace, ours.UID, ours.Generation = name, "media", types.UID("uid-"+name), 4
	ours.CreationTimestamp = metav1.Unix(1_700_000_000, 0)
	ours.Spec.Selector.MatchLabels = map[string]string{"team": "media"}
	ours.Spec.Template.Spec = fixture.CapacitySpec().ScalingSpec
	return ours
}

func functionRef(name string) v1alpha1.ScaleTargetRef {
	return v1alpha1.ScaleTargetRef{APIVersion: meshAPI, Kind: "Function", Name: name}
}

func componentRef(mesh, name string) v1alpha1.ScaleTargetRef {
	return v1alpha1.ScaleTargetRef{
		APIVersion: meshAPI, Kind: "FunctionMesh", Name: mesh,
		Component: v1alpha1.MeshComponent{Kind: v1alpha1.WorkloadFunction, Name: name},
	}
}

// labelled is an object that policySet selects.
func labelled(ref v1alpha1.ScaleTargetRef) set.Selectable {
	return set.Selectable{Ref: ref, Labels: map[string]string{"team": "media"}}
}

// madeBy is the set's policy for an object, as an API server keeps it, with this status of Ready.
func madeBy(t testing.TB, ours *v1alpha1.AutoscalingPolicySet, ref v1alpha1.ScaleTargetRef,
	ready metav1.ConditionStatus, reason string,
) v1alpha1.AutoscalingPolicy {
	t.Helper()
	actions, err := set.New(set.Observe(ours, set.Neighbors{}, []set.Selectable{labelled(ref)}))
	require.NoError(t, err)
	require.Len(t, actions.Apply, 1)
	p := *actions.Apply[0].Policy.DeepCopy()
	p.UID = types.UID("uid-" + p.Name)
	meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: "as it is",
	})
	return p
}

// naming is a user's policy.
func naming(name string, ref v1alpha1.ScaleTargetRef) v1alpha1.AutoscalingPolicy {
	p := v1alpha1.AutoscalingPolicy{Spec: fixture.CapacitySpec()}
	p.Name, p.CreationTimestamp = name, metav1.Unix(1_800_000_000, 0)
	p.Spec.ScaleTargetRef = ref
	return p
}

func TestNamesOfASetsPolicies(t *testing.T) {
	require.Equal(t, "media-resize-15e93f8c24", set.PolicyName("media", functionRef("resize")), "it must never change")
	require.Equal(t, "media-etl-clean-b1d742a1c5", set.PolicyName("media", componentRef("etl", "clean")))
	sink, long := functionRef("resize"), strings.Repeat("a", 60)
	sink.Kind = "Sink"
	sinkOfMesh := componentRef("etl", "clean")
	sinkOfMesh.Component.Kind = v1alpha1.WorkloadSink
	names := map[string]string{
		"a Function":                  set.PolicyName("media", functionRef("resize")),
		"a Sink of that name":         set.PolicyName("media", sink),
		"a boundary in another place": set.PolicyName("media-resize", functionRef("x")),
		"the same with a dash":        set.PolicyName("media", functionRef("resize-x")),
		"a component":                 set.PolicyName("media", componentRef("etl", "clean")),
		"a Sink of the mesh":          set.PolicyName("media", sinkOfMesh),
		"the child of the mesh":       set.PolicyName("media", functionRef("etl-clean")),
		"a long object":               set.PolicyName("media", functionRef(long)),
		"a longer object":             set.PolicyName("media", functionRef(long+"b")),
		"a long set":                  set.PolicyName(long, functionRef("resize")),
		"both long":                   set.PolicyName(long, functionRef(long)),
		"long names that end in a point": set.PolicyName("abcdefghijklmnopqr.stuvwxyzabcdef",
			functionRef("abcdefghijklmnopqr.stuvwxyzabcdefghijkl")),
	}
	seen := map[string]string{}
	for what, name := range names {
		require.Empty(t, validation.IsDNS1123Subdomain(name), what)
		require.LessOrEqual(t, len(name), 50, what)
		require.Contains(t, plan.AutoscalerName(name), name, "%s: it is not cut", what)
		require.NotContains(t, seen, name, what)
		seen[name] = what
	}
	require.Contains(t, set.PolicyName(long, functionRef("resize")), "-resize-", "a long set leaves room for it")
}

func TestPrecedenceOverASet(t *testing.T) {
	older, younger := policySet("early"), policySet("late")
	older.CreationTimestamp, younger.CreationTimestamp = metav1.Unix(1_600_000_000, 0), metav1.Unix(1_900_000_000, 0)
	elsewhere, unread, leaving := older.DeepCopy(), older.DeepCopy(), older.DeepCopy()
	elsewhere.Spec.Selector.MatchLabels = map[string]string{"team": "sound"}
	unread.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	recommending, sink, v2 := naming("one", functionRef("resize")), functionRef("resize"), functionRef("resize")
	recommending.Spec.Mode, sink.Kind, v2.APIVersion = v1alpha1.ModeRecommend, "Sink", "compute.functionmesh.io/v2"
	inMesh, source := labelled(functionRef("etl-clean")), labelled(functionRef("crawl"))
	inMesh.Mesh, source.Unscalable = "etl", "it consumes nothing"
	clean := componentRef("etl", "clean")
	policies := func(all ...v1alpha1.AutoscalingPolicy) set.Neighbors { return set.Neighbors{Policies: all} }
	sets := func(all ...v1alpha1.AutoscalingPolicySet) set.Neighbors { return set.Neighbors{Sets: all} }
	named := &set.NotGoverned{Reason: "NamedByPolicy", Message: "AutoscalingPolicy one names it", Policy: "one"}
	olderOne := func(name string) *set.NotGoverned {
		return &set.NotGoverned{
			Reason: "OlderPolicySet", Message: "the older AutoscalingPolicySet " + name + " selects it",
			Policy: set.PolicyName(name, functionRef("resize")),
		}
	}
	resize := labelled(functionRef("resize"))
	own := madeBy(t, policySet("media"), resize.Ref, "True", "Scaling")
	tests := map[string]struct {
		neighbors set.Neighbors
		object    set.Selectable
		want      *set.NotGoverned
	}{
		"a set governs its matches":               {set.Neighbors{}, resize, nil},
		"a policy that names the object":          {policies(naming("one", functionRef("resize"))), resize, named},
		"a policy that names another version":     {policies(naming("one", v2)), resize, named},
		"a policy that only recommends":           {policies(recommending), resize, named},
		"a policy that names a Sink does not":     {policies(naming("one", sink)), resize, nil},
		"its own policy does not":                 {policies(own), resize, nil},
		"the policy of another set does not":      {policies(madeBy(t, younger, resize.Ref, "True", "X")), resize, nil},
		"a policy that names the component":       {policies(naming("one", clean)), labelled(clean), named},
		"a policy that names the component's own": {policies(naming("one", inMesh.Ref)), labelled(clean), named},
		"a policy that names another component":   {policies(naming("one", componentRef("etl", "x"))), labelled(clean), nil},
		"a younger set does not":                  {sets(*younger), resize, nil},
		"an older set":                            {sets(*older), resize, olderOne("early")},
		"a set of that second, by name":           {sets(*policySet("a-first")), resize, olderOne("a-first")},
		"an older set that selects others":        {sets(*elsewhere), resize, nil},
		"an older set that cannot be read":        {sets(*unread), resize, nil},
		"an older set that is being deleted":      {sets(*leaving), resize, nil},
		"an object of a missing FunctionMesh": {set.Neighbors{}, inMesh, &set.NotGoverned{
			Reason:  "OwnedByFunctionMesh",
			Message: "FunctionMesh etl sets its replicas: label the mesh instead, so that its components get policies",
		}},
		"an object without a backlog": {set.Neighbors{}, source, &set.NotGoverned{
			Reason: "NothingToScale", Message: "it consumes nothing",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ours := policySet("media")
			test.neighbors.Sets = append(test.neighbors.Sets, *ours)
			observed := set.Observe(ours, test.neighbors, []set.Selectable{test.object})
			require.Len(t, observed.Matched, 1)
			require.Equal(t, test.want, observed.Matched[0].NotGoverned)
			actions, err := set.New(observed)
			require.NoError(t, err)
			if test.want != nil {
				require.Empty(t, actions.Apply)
			}
		})
	}
}

func TestAMatchingFunctionMeshGetsAPolicyForEachComponent(t *testing.T) {
	child := labelled(functionRef("etl-clean"))
	child.Mesh = "etl"
	objects := []set.Selectable{child, labelled(componentRef("etl", "clean")), labelled(componentRef("etl", "load"))}
	ours := policySet("media")
	ours.Spec.Template.Spec.Actuator = v1alpha1.ActuatorKEDA
	observed := set.Observe(ours, set.Neighbors{}, objects)
	actions, err := set.New(observed)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.ActuatorAuto, actions.Apply[0].Policy.Spec.Actuator, "it has no scale subresource")
	require.Len(t, observed.Matched, 2, "the mesh's own Functions are skipped")
	require.Len(t, actions.Apply, 2)
	require.Equal(t, componentRef("etl", "clean"), actions.Apply[0].Ref())
	require.Equal(t, componentRef("etl", "load"), actions.Apply[1].Ref())
}

func TestPoliciesFollowTheTemplate(t *testing.T) {
	ours, ref := policySet("media"), functionRef("resize")
	ours.Spec.Template.Metadata = v1alpha1.AutoscalingPolicyTemplateMetadata{
		Labels: map[string]v1alpha1.LabelValue{"team": "media"}, Annotations: map[string]v1alpha1.AnnotationValue{"who": "us"},
	}
	made := madeBy(t, ours, ref, "True", "Scaling")
	require.Equal(t, map[string]string{
		"team": "media", "app.kubernetes.io/managed-by": "pulsar-autoscaler", set.Label: "media",
	}, made.Labels)
	require.Equal(t, v1alpha1.AutoscalingPolicySpec{ScaleTargetRef: ref, ScalingSpec: ours.Spec.Template.Spec}, made.Spec)
	require.Nil(t, made.OwnerReferences[0].BlockOwnerDeletion, "which needs a permission that the adapter does not have")
	tests := map[string]struct {
		set    func(*v1alpha1.AutoscalingPolicySet)
		policy func(*v1alpha1.AutoscalingPolicy)
		want   bool
	}{
		"nothing changed": {want: false},
		"an edit of a field of the template": {policy: func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.MaxReplicas = 500
		}, want: true},
		"an edit of another field": {policy: func(p *v1alpha1.AutoscalingPolicy) {
			p.Spec.Pulsar = &v1alpha1.PulsarConnection{AuthSecret: "own"}
		}, want: false},
		"a label that was removed": {policy: func(p *v1alpha1.AutoscalingPolicy) { delete(p.Labels, "team") }, want: true},
		"a label of a user":        {policy: func(p *v1alpha1.AutoscalingPolicy) { p.Labels["mine"] = "yes" }, want: false},
		"an annotation that was edited": {policy: func(p *v1alpha1.AutoscalingPolicy) {
			p.Annotations["who"] = "them"
		}, want: true},
		"another template": {set: func(ours *v1alpha1.AutoscalingPolicySet) {
			ours.Spec.Template.Spec.Mode = v1alpha1.ModeRecommend
		}, want: true},
		"a label that left the template": {set: func(ours *v1alpha1.AutoscalingPolicySet) {
			ours.Spec.Template.Metadata.Labels = nil
		}, want: true},
		"another selector that matches": {set: func(ours *v1alpha1.AutoscalingPolicySet) {
			ours.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Exists"}}
		}, want: false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			ours, p := ours.DeepCopy(), made.DeepCopy()
			if test.set != nil {
				test.set(ours)
			}
			if test.policy != nil {
				test.policy(p)
			}
			neighbors := set.Neighbors{Policies: []v1alpha1.AutoscalingPolicy{*p}}
			actions, err := set.New(set.Observe(ours, neighbors, []set.Selectable{labelled(ref)}))
			require.NoError(t, err)
			require.Empty(t, actions.Delete)
			require.Equal(t, test.want, len(actions.Apply) == 1)
			if test.want {
				require.Equal(t, p.UID, actions.Apply[0].Policy.UID, "it is meant by its UID")
				require.False(t, actions.Apply[0].Create)
			}
		})
	}
}

func TestPoliciesOfObjectsThatDoNotMatchAreDeleted(t *testing.T) {
	ours := policySet("media")
	neighbors := set.Neighbors{Policies: []v1alpha1.AutoscalingPolicy{
		madeBy(t, ours, functionRef("gone"), "True", "Scaling"), madeBy(t, ours, functionRef("kept"), "True", "Scaling"),
	}}
	observed := set.Observe(ours, neighbors, nil)
	observed.Kept = map[string]bool{set.PolicyName("media", functionRef("kept")): true}
	actions, err := set.New(observed)
	require.NoError(t, err)
	require.Len(t, actions.Delete, 1)
	require.Equal(t, "gone", actions.Delete[0].Spec.ScaleTargetRef.Name)

	ours.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
	actions, err = set.New(set.Observe(ours, neighbors, nil))
	require.NoError(t, err)
	require.Empty(t, actions.Delete, "the matches are unknown")
}

func TestAPolicyThatDidNotJudgeItsSpecYetIsPending(t *testing.T) {
	ours, ref := policySet("media"), functionRef("a")
	p := madeBy(t, ours, ref, "True", "Scaling")
	p.Generation, p.Status.ObservedGeneration = 2, 1
	neighbors := set.Neighbors{Policies: []v1alpha1.AutoscalingPolicy{p}}
	o := set.Outcome{Observed: set.Observe(ours, neighbors, []set.Selectable{labelled(ref)})}
	status := set.Status(v1alpha1.AutoscalingPolicySetStatus{}, o)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	require.Equal(t, metav1.ConditionUnknown, ready.Status)
	require.Equal(t, "Pending", ready.Reason)
	require.Equal(t, "1 of 1 are not ready: Function/a: its spec was changed and is not observed yet", ready.Message)

	neighbors.Policies[0].Status.Conditions[0].Status = metav1.ConditionUnknown
	neighbors.Policies[0].Status.Conditions[0].Reason = v1alpha1.ReasonReconcileFailed
	neighbors.Policies[0].Status.Conditions[0].ObservedGeneration = 2
	o.Observed = set.Observe(ours, neighbors, []set.Selectable{labelled(ref)})
	status = set.Status(v1alpha1.AutoscalingPolicySetStatus{}, o)
	require.Contains(t, meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady).Reason, "ReconcileFailed")
}

func TestSetStatusListsWhatNeedsAFixFirst(t *testing.T) {
	ours := policySet("media")
	ref := functionRef
	own := madeBy(t, ours, ref("taken"), "True", "Scaling")
	own.OwnerReferences = nil
	neighbors := set.Neighbors{Policies: []v1alpha1.AutoscalingPolicy{
		madeBy(t, ours, ref("a"), "True", "Scaling"), madeBy(t, ours, ref("b"), "Unknown", "Pending"),
		madeBy(t, ours, ref("c"), "False", "ConflictingAutoscaler"), naming("own", ref("d")),
	}}
	objects := []set.Selectable{
		labelled(ref("a")), labelled(ref("b")), labelled(ref("c")), labelled(ref("d")), labelled(ref("new")),
		labelled(componentRef("etl", "clean")),
		{Ref: ref("other")},
	}
	o := set.Outcome{Now: time.Unix(1_800_000_000, 0), Observed: set.Observe(ours, neighbors, objects)}
	status := set.Status(v1alpha1.AutoscalingPolicySetStatus{}, o)
	require.Equal(t, int64(4), status.ObservedGeneration)
	require.Equal(t, []int32{6, 5, 1}, counts(status))
	var listed []string
	for _, object := range status.NotReady {
		listed = append(listed, fmt.Sprint(object.Name, " ", object.Component.Name, " ", object.Reason))
	}
	require.Equal(t, []string{
		"c  ConflictingAutoscaler", "b  Pending", "new  Pending", "etl clean Pending", "d  NamedByPolicy",
	}, listed)
	require.Equal(t, v1alpha1.PolicySetObject{
		Kind: "Function", Name: "d", Policy: "own", Reason: "NamedByPolicy", Message: "AutoscalingPolicy own names it",
	}, status.NotReady[4])
	require.Equal(t, "Ready", status.Conditions[0].Type, "it comes first")
	require.Equal(t, []string{
		"Ready False ConflictingAutoscaler: 4 of 5 are not ready: Function/c: as it is; Function/b: as it is; " +
			"Function/new: its policy is new; and 1 more",
		"TargetFound True Found: 6 match", "PoliciesApplied True Applied: policies match the template",
	}, conditionTexts(status))

	o.Observed.Matched[2].NotGoverned = &set.NotGoverned{Reason: "NamedByPolicy", Policy: "another"}
	require.Contains(t, conditionTexts(set.Status(status, o))[0], "Ready Unknown Pending: 3 of 4 are not ready")
}

func counts(status v1alpha1.AutoscalingPolicySetStatus) []int32 {
	return []int32{*status.Matched, *status.Governed, *status.Ready}
}

func conditionTexts(status v1alpha1.AutoscalingPolicySetStatus) []string {
	var texts []string
	for _, c := range status.Conditions {
		texts = append(texts, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
	}
	return texts
}

func TestConditionsOfASet(t *testing.T) {
	resize, ours := functionRef("resize"), policySet("media")
	source := labelled(functionRef("crawl"))
	source.Unscalable = "it consumes nothing"
	scaling := madeBy(t, ours, resize, "True", "Scaling")
	foreign := scaling
	foreign.OwnerReferences = nil
	foreign.Spec.ScaleTargetRef.Name = "another"
	policies := func(all ...v1alpha1.AutoscalingPolicy) set.Neighbors { return set.Neighbors{Policies: all} }
	tests := map[string]struct {
		neighbors set.Neighbors
		objects   []set.Selectable
		change    func(*set.Outcome)
		want      []string
		counts    []int32
	}{
		"all policies are ready": {
			policies(scaling),
			[]set.Selectable{labelled(resize)},
			nil,
			[]string{"Ready True AllReady: 1 of 1 policies are Ready", "TargetFound True", "PoliciesApplied True"},
			[]int32{1, 1, 1},
		},
		"no match": {set.Neighbors{}, nil, nil, []string{
			"Ready False NothingMatches: no Function, Sink, Source or FunctionMesh in namespace media, and no StatefulSet " +
				`there that Pulsar's function worker created, matches "team=media": label one so, or correct spec.selector`,
			"TargetFound False NothingMatches", "PoliciesApplied True",
		}, []int32{0, 0, 0}},
		"no match can be scaled": {
			set.Neighbors{},
			[]set.Selectable{source},
			nil,
			[]string{
				"Ready False NothingToScale: Function/crawl: it consumes nothing", "TargetFound False", "PoliciesApplied True",
			},
			[]int32{1, 0, 0},
		},
		"users' policies name all that matches": {
			policies(naming("one", resize)),
			[]set.Selectable{labelled(resize)},
			nil,
			[]string{
				"Ready True NotGoverned: the set governs none of 1: Function/resize: AutoscalingPolicy one names it",
				"TargetFound True", "PoliciesApplied True",
			},
			[]int32{1, 0, 0},
		},
		"a user's policy has the name": {
			policies(foreign),
			[]set.Selectable{labelled(resize)},
			nil,
			[]string{
				"Ready False PolicyNameTaken: Function/resize: AutoscalingPolicy media-resize-15e93f8c24, which this set does " +
					"not control, has the name of its policy: rename or delete it", "TargetFound True", "PoliciesApplied False",
			},
			[]int32{1, 0, 0},
		},
		"the API server refuses a new policy": {
			set.Neighbors{},
			[]set.Selectable{labelled(resize)},
			func(o *set.Outcome) { o.Observed.Matched[0].Refused = "quota" },
			[]string{
				"Ready False ApplyRefused: the API server refuses policies: Function/resize: quota", "TargetFound True",
				"PoliciesApplied False",
			},
			[]int32{1, 0, 0},
		},
		"the API server refuses a change": {
			policies(scaling),
			[]set.Selectable{labelled(resize)},
			func(o *set.Outcome) { o.Observed.Matched[0].Refused = "quota" },
			[]string{"Ready False ApplyRefused", "TargetFound True", "PoliciesApplied False"},
			[]int32{1, 1, 0},
		},
		"a write fails": {
			policies(scaling),
			[]set.Selectable{labelled(resize)},
			func(o *set.Outcome) { o.Failed = errors.New("timeout") },
			[]string{
				"Ready Unknown ApplyFailed: the controller tries again: timeout", "TargetFound True", "PoliciesApplied Unknown",
			},
			[]int32{1, 1, 1},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := set.Outcome{Now: time.Unix(1_800_000_000, 0), Observed: set.Observe(ours, test.neighbors, test.objects)}
			if test.change != nil {
				test.change(&o)
			}
			status := set.Status(v1alpha1.AutoscalingPolicySetStatus{}, o)
			texts := conditionTexts(status)
			require.Len(t, texts, len(test.want))
			for i, want := range test.want {
				require.True(t, strings.HasPrefix(texts[i], want), "%s is not %s", texts[i], want)
			}
			require.Equal(t, test.counts, counts(status))
		})
	}
}

func TestSetStatusIsUnknownWhileTheSelectorCannotBeRead(t *testing.T) {
	ours := policySet("media")
	ours.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Is"}}
	status := set.Status(v1alpha1.AutoscalingPolicySetStatus{Matched: new(int32(3))},
		set.Outcome{Observed: set.Observe(ours, set.Neighbors{}, []set.Selectable{labelled(functionRef("a"))})})
	require.Nil(t, status.Matched)
	require.Nil(t, status.Governed)
	require.Equal(t, `Ready False SelectorInvalid: correct spec.selector: "Is" is not a valid label selector operator`,
		conditionTexts(status)[0])
}

func TestSetStatusIsWrittenAtOnceOnlyWhenAConditionChanges(t *testing.T) {
	ours := policySet("media")
	at := func(message string, ready metav1.ConditionStatus) v1alpha1.AutoscalingPolicySetStatus {
		p := madeBy(t, ours, functionRef("a"), ready, "Any")
		p.Status.Conditions[0].Message = message
		neighbors := set.Neighbors{Policies: []v1alpha1.AutoscalingPolicy{p}}
		observed := set.Observe(ours, neighbors, []set.Selectable{labelled(functionRef("a"))})
		return set.Status(v1alpha1.AutoscalingPolicySetStatus{},
			set.Outcome{Now: time.Unix(1_800_000_000, 0), Observed: observed})
	}
	before, next := at("3", "False"), at("3", "False")
	next.ObservedGeneration++
	tests := map[string]struct {
		after   v1alpha1.AutoscalingPolicySetStatus
		since   time.Duration
		wait    time.Duration
		differs bool
	}{
		"never while it is the same":             {at("3", "False"), time.Hour, 0, false},
		"within ten seconds of the last one":     {at("4", "False"), 3 * time.Second, 7 * time.Second, true},
		"at once when the last one was long ago": {at("4", "False"), time.Minute, 0, true},
		"at once when Ready changes":             {at("3", "True"), 0, 0, true},
		"at once when it answers another spec":   {next, 0, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wait, differs := set.StatusDue(before, test.after, test.since)
			require.Equal(t, test.differs, differs)
			require.Equal(t, test.wait, wait)
		})
	}
}

// stalledBy is the reason of condition Stalled; empty while that is absent.
func stalledBy(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionStalled); c != nil {
		return string(c.Status) + "/" + c.Reason
	}
	return ""
}

func TestASetThatMatchesNothingIsStalled(t *testing.T) {
	ours := policySet("media")
	observed := set.Observe(ours, set.Neighbors{}, nil)
	status := set.Status(ours.Status, set.Outcome{Now: fixture.Noon(), Observed: observed})
	require.Empty(t, stalledBy(status.Conditions), "its objects may be on their way")
	later := set.Status(status, set.Outcome{Now: fixture.Noon().Add(time.Minute), Observed: observed})
	require.Equal(t, "True/NothingMatches", stalledBy(later.Conditions))
	_, due := set.StatusDue(status, later, time.Minute)
	require.True(t, due)

	observed = set.Observe(ours, set.Neighbors{}, []set.Selectable{labelled(functionRef("resize"))})
	later = set.Status(later, set.Outcome{Now: fixture.Noon().Add(time.Hour), Observed: observed})
	require.Empty(t, stalledBy(later.Conditions))
}

// BenchmarkPolicySet is one reconcile over 1000 unchanged objects, without reading them from the cache.
func BenchmarkPolicySet(b *testing.B) {
	ours := policySet("media")
	var neighbors set.Neighbors
	var objects []set.Selectable
	for i := range 1000 {
		ref := functionRef(fmt.Sprintf("f-%03d", i))
		neighbors.Policies = append(neighbors.Policies, madeBy(b, ours, ref, "True", "Scaling"))
		objects = append(objects, labelled(ref))
	}
	b.ReportAllocs()
	for b.Loop() {
		observed := set.Observe(ours, neighbors, objects)
		actions, err := set.New(observed)
		require.NoError(b, err)
		require.Empty(b, actions.Apply)
		set.Status(ours.Status, set.Outcome{Observed: observed})
	}
}
