// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"encoding/json"
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
)

// fleet governs the Functions with label team=media.
func fleet(name string) *v1alpha1.AutoscalingPolicy {
	p := &v1alpha1.AutoscalingPolicy{Spec: spec()}
	p.Name, p.Namespace, p.UID, p.Generation = name, "media", types.UID("uid-"+name), 4
	p.CreationTimestamp = metav1.Unix(1_700_000_000, 0)
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
	p.Spec.TargetSelector = &v1alpha1.TargetSelector{
		Kind: "Function", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "media"}},
	}
	return p
}

// madeBy is the child of the fleet for an object, as an API server keeps it, Ready as said.
func madeBy(t testing.TB, f *v1alpha1.AutoscalingPolicy, object string, ready metav1.ConditionStatus,
	reason string,
) v1alpha1.AutoscalingPolicy {
	t.Helper()
	actions, err := plan.NewFleetPlan(plan.NewFleetWorld(f, nil, []plan.Selectable{member(object)}))
	require.NoError(t, err)
	require.Len(t, actions.Apply, 1)
	text, err := json.Marshal(actions.Apply[0].Child)
	require.NoError(t, err)
	var child v1alpha1.AutoscalingPolicy
	require.NoError(t, json.Unmarshal(text, &child))
	child.UID = types.UID("uid-" + child.Name)
	meta.SetStatusCondition(&child.Status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: ready, Reason: reason, Message: "so it is",
	})
	return child
}

func member(name string) plan.Selectable {
	return plan.Selectable{Name: name, Labels: map[string]string{"team": "media"}}
}

// naming is a user's policy.
func naming(name, apiVersion, kind, object string) v1alpha1.AutoscalingPolicy {
	p := v1alpha1.AutoscalingPolicy{Spec: spec()}
	p.Name, p.CreationTimestamp = name, metav1.Unix(1_800_000_000, 0)
	p.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{APIVersion: apiVersion, Kind: kind, Name: object}
	return p
}

func TestNamesOfChildrenAreValidStableAndApart(t *testing.T) {
	function := func(name string) v1alpha1.ScaleTargetRef { return plan.FleetRef(fleet("f"), name) }
	require.Equal(t, "media-resize-15e93f8c24", plan.ChildName("media", function("resize")), "it must never change")
	sink := function("resize")
	sink.Kind = "Sink"
	long := strings.Repeat("a", 60)
	seen := map[string]string{}
	for what, name := range map[string]string{
		"a Function":              plan.ChildName("media", function("resize")),
		"the Sink of its name":    plan.ChildName("media", sink),
		"another fleet":           plan.ChildName("media-resize", function("x")),
		"one that reads the same": plan.ChildName("media", function("resize-x")),
		"a long object":           plan.ChildName("media", function(long)),
		"a longer object":         plan.ChildName("media", function(long+"b")),
		"a long fleet":            plan.ChildName(long, function("resize")),
		"both long":               plan.ChildName(long, function(long)),
		"long names that end in a point": plan.ChildName("abcdefghijklmnopqr.stuvwxyzabcdef",
			function("abcdefghijklmnopqr.stuvwxyzabcdefghijkl")),
	} {
		require.Empty(t, validation.IsDNS1123Subdomain(name), what)
		require.LessOrEqual(t, len(name), 50, what)
		require.Contains(t, plan.AutoscalerName(name), name, "%s: it is not cut", what)
		require.NotContains(t, seen, name, what)
		seen[name] = what
	}
	require.Contains(t, plan.ChildName(long, function("resize")), "-resize-", "a long fleet leaves room for the object")
}

func TestAFleetGoverns(t *testing.T) {
	const ours = "compute.functionmesh.io/v1alpha1"
	older, younger := fleet("early"), fleet("late")
	older.CreationTimestamp, younger.CreationTimestamp = metav1.Unix(1_600_000_000, 0), metav1.Unix(1_900_000_000, 0)
	elsewhere, unread, leaving, ofSinks := older.DeepCopy(), older.DeepCopy(), older.DeepCopy(), older.DeepCopy()
	elsewhere.Spec.TargetSelector.MatchLabels = map[string]string{"team": "sound"}
	unread.Spec.TargetSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Is"}}
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	ofSinks.Spec.TargetSelector.Kind = "Sink"
	sameAge := fleet("a-first")
	recommending := naming("one", ours, "Function", "resize")
	recommending.Spec.Mode = v1alpha1.ModeRecommend
	inMesh := member("resize")
	inMesh.Controller = "FunctionMesh etl"
	tests := map[string]struct {
		policies []v1alpha1.AutoscalingPolicy
		object   plan.Selectable
		left     string
	}{
		"what matches": {nil, member("resize"), ""},
		"not what a policy names": {[]v1alpha1.AutoscalingPolicy{naming("one", ours, "Function",
			"resize")}, member("resize"), "AutoscalingPolicy one names it"},
		"not what one names in another version": {[]v1alpha1.AutoscalingPolicy{naming("one",
			"compute.functionmesh.io/v2", "Function", "resize")}, member("resize"), "AutoscalingPolicy one names it"},
		"not even what one names that only recommends": {
			[]v1alpha1.AutoscalingPolicy{recommending},
			member("resize"),
			"AutoscalingPolicy one names it",
		},
		"what has the name of a Sink that one names": {[]v1alpha1.AutoscalingPolicy{naming("one", ours, "Sink",
			"resize")}, member("resize"), ""},
		"what its own child names": {[]v1alpha1.AutoscalingPolicy{madeBy(t, fleet("media"), "resize",
			"True", "Scaling")}, member("resize"), ""},
		"what a younger fleet selects as well": {[]v1alpha1.AutoscalingPolicy{
			*younger,
			madeBy(t, younger, "resize", "True", "Scaling"),
		}, member("resize"), ""},
		"not what an older fleet selects": {
			[]v1alpha1.AutoscalingPolicy{*older},
			member("resize"),
			"the older AutoscalingPolicy early selects it",
		},
		"not what one of its age and before it selects": {
			[]v1alpha1.AutoscalingPolicy{*sameAge},
			member("resize"),
			"the older AutoscalingPolicy a-first selects it",
		},
		"what an older one does not select":                {[]v1alpha1.AutoscalingPolicy{*elsewhere}, member("resize"), ""},
		"what an older one of Sinks would select":          {[]v1alpha1.AutoscalingPolicy{*ofSinks}, member("resize"), ""},
		"what an older one that cannot be read may select": {[]v1alpha1.AutoscalingPolicy{*unread}, member("resize"), ""},
		"what an older one that is being deleted selects":  {[]v1alpha1.AutoscalingPolicy{*leaving}, member("resize"), ""},
		"not what is in a mesh": {
			nil, inMesh,
			"it belongs to FunctionMesh etl: name its component in a policy of its own",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			w := plan.NewFleetWorld(fleet("media"), append(test.policies, *fleet("media")), []plan.Selectable{test.object})
			require.Len(t, w.Matched, 1)
			require.Equal(t, test.left, w.Matched[0].LeftBecause)
			actions, err := plan.NewFleetPlan(w)
			require.NoError(t, err)
			if test.left != "" {
				require.Empty(t, actions.Apply)
			}
		})
	}
}

func TestOfStatefulSetsThoseOfTheFunctionWorkerAreMeant(t *testing.T) {
	f := fleet("media")
	f.Spec.TargetSelector = &v1alpha1.TargetSelector{Kind: "StatefulSet"}
	objects := []plan.Selectable{
		{Name: "pf-public-default-resize", OfWorker: true},
		{Name: "zookeeper"},
		{Name: "pf-x-function", Controller: "Function pf-x"},
		{Name: "pf-public-default-database"},
		{Name: "nightly-1c2d3e4f", OfWorker: true},
	}
	w := plan.NewFleetWorld(f, nil, objects)
	require.Len(t, w.Matched, 2)
	require.Equal(t, "nightly-1c2d3e4f", w.Matched[0].Name, "a worker with a jobName gives other names")
	actions, err := plan.NewFleetPlan(w)
	require.NoError(t, err)
	require.Equal(t, v1alpha1.ScaleTargetRef{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "pf-public-default-resize"},
		actions.Apply[1].Child.Spec.ScaleTargetRef)
}

func TestFleetStatusSaysWhatIsNotReadyFirst(t *testing.T) {
	f := fleet("media")
	policies := []v1alpha1.AutoscalingPolicy{
		*f, madeBy(t, f, "a", "True", "Scaling"), madeBy(t, f, "b", "Unknown", "Pending"), madeBy(t, f, "c", "False",
			"ConflictingAutoscaler"),
		naming("own", "compute.functionmesh.io/v1alpha1", "Function", "d"),
	}
	policies[1].Status.CurrentReplicas, policies[1].Status.DesiredReplicas = new(int32(2)), new(int32(3))
	objects := []plan.Selectable{member("a"), member("b"), member("c"), member("d"), member("new"), {Name: "other"}}
	o := plan.FleetOutcome{Now: time.Unix(1_800_000_000, 0), World: plan.NewFleetWorld(f, policies, objects)}
	status := plan.FleetStatus(v1alpha1.AutoscalingPolicyStatus{}, o)
	require.Equal(t, "4 of 5 Functions", status.Target)
	require.Equal(t, int64(4), status.ObservedGeneration)
	require.Equal(t, []int32{5, 4, 1}, []int32{status.Fleet.Matched, status.Fleet.Governed, status.Fleet.Ready})
	var told []string
	for _, target := range status.Fleet.Targets {
		told = append(told, fmt.Sprint(target.Name, " ", target.Ready, " ", target.Reason))
	}
	require.Equal(t, []string{"c False ConflictingAutoscaler", "b Unknown Pending", "new  Pending", "a True Scaling"},
		told)
	require.Equal(t, int32(3), *status.Fleet.Targets[3].DesiredReplicas)
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	require.Equal(t, "False ConflictingAutoscaler", string(ready.Status)+" "+ready.Reason)
	require.Equal(t, "3 of 4 Functions are not ready: c: so it is; b: so it is; new: its policy is new", ready.Message)

	o.World.Matched[2].LeftBecause = "somebody has it"
	ready = meta.FindStatusCondition(plan.FleetStatus(status, o).Conditions, v1alpha1.ConditionReady)
	require.Equal(t, "Unknown Pending", string(ready.Status)+" "+ready.Reason)
}

func TestFleetStatusIsWrittenAtOnceOnlyWhenReadyChanges(t *testing.T) {
	f := fleet("media")
	at := func(desired int32, ready metav1.ConditionStatus) v1alpha1.AutoscalingPolicyStatus {
		child := madeBy(t, f, "a", ready, "Any")
		child.Status.DesiredReplicas = &desired
		w := plan.NewFleetWorld(f, []v1alpha1.AutoscalingPolicy{child}, []plan.Selectable{member("a")})
		return plan.FleetStatus(v1alpha1.AutoscalingPolicyStatus{},
			plan.FleetOutcome{Now: time.Unix(1_800_000_000, 0), World: w})
	}
	before := at(3, "True")
	tests := map[string]struct {
		after   v1alpha1.AutoscalingPolicyStatus
		since   time.Duration
		wait    time.Duration
		differs bool
	}{
		"never while it is the same":             {at(3, "True"), time.Hour, 0, false},
		"within ten seconds of the last one":     {at(4, "True"), 3 * time.Second, 7 * time.Second, true},
		"at once when the last one was long ago": {at(4, "True"), time.Minute, 0, true},
		"at once when Ready changes":             {at(3, "False"), 0, 0, true},
		"at once when it is of another spec":     {withGeneration(at(3, "True"), 5), 0, 0, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			wait, differs := plan.FleetStatusDue(before, test.after, test.since)
			require.Equal(t, test.differs, differs)
			require.Equal(t, test.wait, wait)
		})
	}
}

func withGeneration(s v1alpha1.AutoscalingPolicyStatus, generation int64) v1alpha1.AutoscalingPolicyStatus {
	s.ObservedGeneration = generation
	return s
}

func TestAFleetAsAWholeHasNoMetric(t *testing.T) {
	f := fleet("media")
	require.Contains(t, plan.FleetHasNoMetric(f), "governs nothing so far")
	f.Status.Fleet = &v1alpha1.Fleet{
		Governed: 5,
		Targets:  []v1alpha1.FleetTarget{{Policy: "a"}, {Policy: "b"}, {Policy: "c"}, {Policy: "d"}},
	}
	require.Equal(t,
		"AutoscalingPolicy media has a targetSelector and no number of its own: ask for one of its 5 policies: a; b; c; "+
			"and 2 more",
		plan.FleetHasNoMetric(f))
}

// BenchmarkFleet is one pass over 1000 targets of which nothing changed, without reading them from memory.
func BenchmarkFleet(b *testing.B) {
	f := fleet("media")
	policies, objects := []v1alpha1.AutoscalingPolicy{*f}, []plan.Selectable(nil)
	for i := range 1000 {
		name := fmt.Sprintf("f-%03d", i)
		policies, objects = append(policies, madeBy(b, f, name, "True", "Scaling")), append(objects, member(name))
	}
	b.ReportAllocs()
	for b.Loop() {
		w := plan.NewFleetWorld(f, policies, objects)
		actions, err := plan.NewFleetPlan(w)
		require.NoError(b, err)
		require.Empty(b, actions.Apply)
		plan.FleetStatus(f.Status, plan.FleetOutcome{World: w})
	}
}
